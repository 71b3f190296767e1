// What the workbench of the page is sent, and what becomes of it when a question ends it, or when it cannot be loaded. The
// limits are on standard input.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const [, , root] = process.argv;
const limits = JSON.parse(readFileSync(0, "utf8"));
const { WorkbenchModule } = await import(`${root}/web/playground/workbench/module.js`);
const { Workbench, submitted } = await import(`${root}/web/playground/workbench/workbench.js`);
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

test("half of a character in a source is what the sandbox makes of it", () => {
  const typed = submitted({ text: "\ufefffunction decodeUplink() { return { data: { x: '\ud800' } }; }", dialect: null }, []);
  assert.equal(typed.text, "\ufefffunction decodeUplink() { return { data: { x: '\ufffd' } }; }");
  assert.ok(new WorkbenchModule(module, guest).answer({ lint: typed }, limits).some(({ runs }) => runs));
});

/** What a worker says once it has a guest, with a server that gives this answer to whoever asks for the module. */
async function said(name, answer) {
  return new Promise((resolve) => {
    Object.assign(globalThis, { onmessage: null, postMessage: resolve, fetch: answer });
    import(`${root}/web/playground/workbench/worker.js?${name}`).then(() => globalThis.onmessage({ data: { guest, limits } }));
  });
}

test("a worker says what became of its module", async () => {
  const bytes = readFileSync(`${root}/workbench/browser.wasm`);
  assert.deepEqual(await said("there", async () => new Response(bytes)), { isLoaded: true });
  assert.deepEqual(await said("missing", async () => new Response("", { status: 503 })), { broken: "workbench.wasm cannot be loaded: 503" });
  const away = await said("away", async () => Promise.reject(new TypeError("Failed to fetch")));
  assert.deepEqual(away, { broken: "workbench.wasm cannot be loaded: the server does not answer" });
});

test("only a worker that has loaded is watched, and one that could not load is replaced", async () => {
  const [workers, timers, own] = [[], [], globalThis.setTimeout];
  globalThis.Worker = class {
    constructor() {
      workers.push(this);
    }
    postMessage() {}
    terminate() {}
  };
  globalThis.setTimeout = (ends) => timers.push(ends);
  try {
    const workbench = new Workbench({ guest, limits });
    const first = workbench.networks();
    workers[0].onmessage({ data: { broken: "503" } });
    await assert.rejects(first, /^Error: 503$/);
    const second = workbench.networks();
    assert.deepEqual([workers.length, timers.length], [2, 0]);
    workers[1].onmessage({ data: { isLoaded: true } });
    assert.equal(timers.length, 1);
    timers[0]();
    await assert.rejects(second, /took too long/);
  } finally {
    globalThis.setTimeout = own;
  }
});
