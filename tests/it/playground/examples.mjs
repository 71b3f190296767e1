// Saves examples of the codec of standard input in each layout of the page, below a directory, in Node.js.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const [, , root, dir] = process.argv;
const { limits, text, name, messages, downlink } = JSON.parse(readFileSync(0, "utf8"));
const { Sandbox } = await import(`${root}/web/playground/sandbox/sandbox.js`);
const { examplesOf } = await import(`${root}/web/playground/examples/examples.js`);
const { LAYOUTS, writeExamples } = await import(`${root}/web/playground/examples/layouts.js`);
const examples = examplesOf(new Sandbox(readFileSync(`${root}/runtime/guest.wasm`), limits), { text, dialect: null }, messages, downlink);
for (const layout of Object.keys(LAYOUTS)) {
  const { file, content, script } = writeExamples(layout, { script: name, dialect: null, examples });
  mkdirSync(`${dir}/${layout}`);
  writeFileSync(`${dir}/${layout}/${file}`, content);
  writeFileSync(`${dir}/${layout}/${script}`, text);
}
