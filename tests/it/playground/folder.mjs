// Reads the codecs below a directory as the page does, in Node.js, and prints what came of their examples as JSON. With
// `updated`, it then writes what the codecs return into the files of the examples; with `added`, a payload that no example
// has, twice, and one that they have. The limits are on standard input.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";

const [, , root, dir, what] = process.argv;
const limits = JSON.parse(readFileSync(0, "utf8"));
const { Tree } = await import(`${root}/web/playground/workbench/tree.js`);
const { WorkbenchModule } = await import(`${root}/web/playground/workbench/module.js`);
const module = await WebAssembly.compile(readFileSync(`${root}/workbench/browser.wasm`));
const workbench = new WorkbenchModule(module, readFileSync(`${root}/runtime/guest.wasm`));
const ask = (question) => workbench.answer(question, limits);

const tree = new Tree(({ bytes }) => bytes);
const put = (path, bytes) => tree.set(path, { bytes, size: bytes.length });
for (const path of readdirSync(dir, { recursive: true })) {
  if (statSync(`${dir}/${path}`).isFile()) put(path, new Uint8Array(readFileSync(`${dir}/${path}`)));
}
workbench.open(tree);
const { codecs, problems } = ask("codecs");
const tested = codecs.map((codec) => {
  const { origin } = codec;
  return { ...codec, opened: ask({ openCodec: origin }), tested: ask({ testCodec: { origin, text: null } }), linted: ask({ lintCodec: origin }) };
});
const homeOf = ({ examples, script }) => (examples ?? script ?? "").split("/").slice(0, -1).join("/");
for (const home of new Set(codecs.map(({ origin }) => homeOf(origin)))) {
  const beside = tested.filter(({ origin }) => homeOf(origin) === home);
  const alone = beside.map(({ tested: { report }, linted }) => ({ report, verdicts: linted }));
  const gone = { ...beside[0].origin, id: "gone" };
  const together = ask({ compareCodecs: [...beside.map(({ origin }) => origin), gone] });
  assert.deepEqual(together, [...alone, { report: null, verdicts: null }], home);
}
const write = ({ path, text }) => {
  writeFileSync(`${dir}/${path}`, text);
  put(path, new TextEncoder().encode(text));
};
if (what === "updated") {
  for (const { origin } of codecs) ask({ updateExamples: { origin, text: null } }).files.forEach(write);
}
const added = {};
if (what === "added") {
  for (const { origin, opened } of tested) {
    const known = opened.uplinks.map(({ port, payload }) => ({ port, payload: [...Buffer.from(payload, "hex")] }));
    const another = { port: 9, payload: [8, 0] };
    try {
      const answer = ask({ addExamples: { origin, text: null, payloads: [...known, another, another] } });
      if (answer.file !== null) write(answer.file);
      added[origin.id] = [answer.added, answer.left];
    } catch (error) {
      added[origin.id] = error.message;
    }
  }
}
process.stdout.write(JSON.stringify({ codecs: tested, problems, ci: ask("ciFile"), added }));
