// Serves the package to a browser. `node server.js` prints its port.

import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

const TYPES = { ".js": "text/javascript", ".html": "text/html" };

/** The file of a request: packages are beside this one, where the test has installed them. */
function file(path) {
  return fileURLToPath(new URL(path.startsWith("/node_modules/") ? `../../..${path}` : `../..${path}`, import.meta.url));
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  response.setHeader("content-type", TYPES[extname(pathname)] ?? "text/plain");
  const stream = createReadStream(file(pathname));
  stream.on("error", () => response.writeHead(404).end());
  stream.pipe(response);
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
