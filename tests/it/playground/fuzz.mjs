// Fuzzes the codec of standard input as the page does, in Node.js, and prints the report as JSON.

import { readFileSync } from "node:fs";

const [, , root] = process.argv;
const { limits, question } = JSON.parse(readFileSync(0, "utf8"));
const { WorkbenchModule } = await import(`${root}/web/playground/workbench/module.js`);
const module = await WebAssembly.compile(readFileSync(`${root}/workbench/browser.wasm`));
const workbench = new WorkbenchModule(module, readFileSync(`${root}/runtime/guest.wasm`));
process.stdout.write(JSON.stringify(workbench.answer(question, limits)));
