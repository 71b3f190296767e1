// Saves examples of the codec of standard input in each layout of the page, below a directory, in Node.js.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const [, , root, dir] = process.argv;
const { limits, text, name, layouts, messages, downlink } = JSON.parse(readFileSync(0, "utf8"));
const { submitted } = await import(`${root}/web/playground/workbench/workbench.js`);
const { WorkbenchModule } = await import(`${root}/web/playground/workbench/module.js`);
const module = await WebAssembly.compile(readFileSync(`${root}/workbench/browser.wasm`));
const workbench = new WorkbenchModule(module, readFileSync(`${root}/runtime/guest.wasm`));
const codec = submitted({ text, dialect: null }, []);
for (const layout of layouts) {
  const made = workbench.answer({ newExamples: { layout, script: name, codec, payloads: messages, downlink } }, limits);
  mkdirSync(`${dir}/${layout}`);
  writeFileSync(`${dir}/${layout}/${made.file}`, made.text);
  writeFileSync(`${dir}/${layout}/${made.script}`, text);
}
