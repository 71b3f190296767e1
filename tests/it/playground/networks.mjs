// Judges the codecs of standard input for each network as the page does, in Node.js, and ports them to the given ones.
// Prints a line of JSON for each codec.

import { readFileSync } from "node:fs";

const [, , root] = process.argv;
const { limits, codecs } = JSON.parse(readFileSync(0, "utf8"));
const { WorkbenchModule } = await import(`${root}/web/playground/workbench/module.js`);
const module = await WebAssembly.compile(readFileSync(`${root}/workbench/browser.wasm`));
const workbench = new WorkbenchModule(module, readFileSync(`${root}/runtime/guest.wasm`));
for (const { codec, targets } of codecs) {
  const verdicts = workbench.answer({ lint: codec }, limits);
  const ported = targets.map((target) => workbench.answer({ port: { codec, target } }, limits));
  process.stdout.write(`${JSON.stringify({ verdicts, ported })}\n`);
}
