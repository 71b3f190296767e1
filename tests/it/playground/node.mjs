// Runs the vectors of standard input in Node.js, and prints their outcomes or profiles as JSON.

import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [, , root, what] = process.argv;
const { limits, vectors } = JSON.parse(readFileSync(0, "utf8"));
const functions = runInThisContext(`${readFileSync(`${root}/tests/it/playground/vectors.js`, "utf8")}; ({ outcomes, profiles })`);
const sandbox = await import(`${root}/web/playground/sandbox/sandbox.js`);
const profiler = await import(`${root}/web/playground/profile/profiler.js`);
const guest = readFileSync(`${root}/runtime/guest.wasm`);
process.stdout.write(JSON.stringify(functions[what]({ ...sandbox, ...profiler }, guest, limits, vectors)));
