// Answers questions to the workbench beside the page, one after the other.

import { WorkbenchModule } from "./module.js";
import { Tree } from "./tree.js";

/** The time between two reports of how many messages have run, in milliseconds. */
const REPORT_MS = 100;

let limits = null;
/** The module, once it is compiled. */
let workbench = null;
/** The files that somebody has opened. */
let tree = newTree();
/** The question, the messages that have run for it, and when the page heard of them. */
let [id, messages, told] = [0, 0, 0];

onmessage = async ({ data }) => {
  if (data.guest !== undefined) {
    limits = data.limits;
    workbench = compile(data.guest);
    workbench.then(() => postMessage({ isLoaded: true }), ({ message }) => postMessage({ broken: message }));
    return;
  }
  if (data.files !== undefined) {
    if (data.isAnother) tree = newTree();
    for (const [path, file] of data.files) tree.set(path, file);
    return;
  }
  try {
    const ready = await workbench;
    ready.open(tree);
    [id, messages, told] = [data.id, 0, performance.now()];
    postMessage({ id: data.id, answer: ready.answer(data.question, limits) });
  } catch (error) {
    postMessage({ id: data.id, problem: error.message });
  }
};

async function compile(guest) {
  const response = await fetch(new URL("../workbench.wasm", import.meta.url)).catch(() => null);
  if (!response?.ok) throw new Error(`workbench.wasm cannot be loaded: ${response?.status ?? "the server does not answer"}`);
  return new WorkbenchModule(await WebAssembly.compile(await response.arrayBuffer()), guest, count);
}

/** A worker can read a file at once, so that the workbench need not wait for it. */
function newTree() {
  return new Tree((file) => new Uint8Array(new FileReaderSync().readAsArrayBuffer(file)));
}

function count() {
  messages += 1;
  if (performance.now() - told < REPORT_MS) return;
  told = performance.now();
  postMessage({ id, messages });
}
