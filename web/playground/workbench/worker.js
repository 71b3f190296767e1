// Answers questions to the workbench beside the page, one after the other.

import { WorkbenchModule } from "./module.js";

let limits = null;
/** The module, once it is compiled. */
let workbench = null;

onmessage = async ({ data }) => {
  if (data.guest !== undefined) {
    limits = data.limits;
    workbench = compile(data.guest);
    return;
  }
  try {
    const answer = (await workbench).answer(data.question, limits);
    postMessage({ id: data.id, answer });
  } catch (error) {
    postMessage({ id: data.id, problem: error.message });
  }
};

async function compile(guest) {
  const response = await fetch(new URL("../workbench.wasm", import.meta.url));
  if (!response.ok) throw new Error(`workbench.wasm cannot be loaded: ${response.status}`);
  return new WorkbenchModule(await WebAssembly.compile(await response.arrayBuffer()), guest);
}
