// What becomes of the workbench of the page when a question ends it, and when it cannot be loaded; the limits are those of
// standard input.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const [, , root] = process.argv;
const limits = JSON.parse(readFileSync(0, "utf8"));
const { WorkbenchModule } = await import(`${root}/web/playground/workbench/module.js`);
const guest = readFileSync(`${root}/runtime/guest.wasm`);
const module = await WebAssembly.compile(readFileSync(`${root}/workbench/browser.wasm`));

const codec = (text) => ({ text, dialect: null, uplinks: [{ line: 1, port: 1, payload: [7], timeMs: 0 }] });

test("questions that the module does not survive leave nothing behind", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const workbench = new WorkbenchModule(module, guest);
  const deep = { lint: codec(`function decodeUplink() { return { data: { x: ${"1+".repeat(60_000)}1 } }; }`) };
  const ask = () => assert.throws(() => workbench.answer(deep, limits), /nested too deeply for this browser/);
  ask();
  const before = process.memoryUsage().arrayBuffers;
  // Each loads a codec of some megabytes.
  for (let count = 0; count < 8; count += 1) ask();
  let after;
  for (let tries = 0; tries < 100; tries += 1) {
    collect();
    await new Promise(setImmediate);
    after = process.memoryUsage().arrayBuffers;
    if (after - before < 24 << 20) break;
  }
  assert.ok(after - before < 24 << 20, `${after} bytes, ${before} after the first question`);
  const verdicts = workbench.answer({ lint: codec("function decodeUplink() { return { data: {} }; }") }, limits);
  assert.ok(verdicts.some(({ runs }) => runs));
});
