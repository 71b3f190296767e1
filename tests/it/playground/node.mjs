// Runs the vectors of standard input in Node.js, and prints their outcomes as JSON.

import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [, , root] = process.argv;
const { limits, vectors } = JSON.parse(readFileSync(0, "utf8"));
const outcomes = runInThisContext(`${readFileSync(`${root}/tests/it/playground/vectors.js`, "utf8")}; outcomes`);
const sandbox = await import(`${root}/web/playground/sandbox/sandbox.js`);
const guest = readFileSync(`${root}/runtime/guest.wasm`);
process.stdout.write(JSON.stringify(outcomes(sandbox, guest, limits, vectors)));
