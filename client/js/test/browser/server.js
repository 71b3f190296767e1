// Serves the package to a browser, and passes its WebSocket connections on to an MQTT broker.
//
// `node server.js HOST:PORT` prints its own port.

import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

import { WebSocketServer, createWebSocketStream } from "ws";

const TYPES = { ".js": "text/javascript", ".html": "text/html" };
const [host, port] = process.argv[2].split(":");

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

new WebSocketServer({ server, path: "/mqtt", handleProtocols: () => "mqtt" }).on("connection", (socket) => {
  const [browser, broker] = [createWebSocketStream(socket), connect(port, host)];
  browser.on("error", () => broker.destroy());
  broker.on("error", () => browser.destroy());
  browser.pipe(broker).pipe(browser);
});

server.listen(0, "127.0.0.1", () => console.log(server.address().port));
