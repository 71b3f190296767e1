// What a folder of the page makes of files: which it takes, what it changes in them, and the archive that it saves, which is
// written to the path in the environment.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Folder } from "../../../web/playground/folder/folder.js";
import { takeFiles } from "../../../web/playground/folder/pick.js";
import { zipped } from "../../../web/playground/folder/zip.js";
import { Tree } from "../../../web/playground/workbench/tree.js";

const folder = (texts) => new Folder("codecs", new Map(Object.entries(texts).map(([path, text]) => [path, { file: new Blob([text]), handle: null }])));
const inFolder = (path) => Object.assign(new Blob(["x"]), { name: path.split("/").pop(), webkitRelativePath: path });

test("line ends and marks of files stay, and what is as it was is no change", async () => {
  const made = folder({ "a.js": "\ufeffone\r\ntwo\r\n", "b.yaml": "x\ny\n" });
  assert.equal(await made.text("a.js"), "one\ntwo\n");
  made.edit("a.js", "one\n2\n");
  assert.deepEqual([made.changed, made.unsaved("a.js")], [["a.js"], "\ufeffone\r\n2\r\n"]);
  assert.equal(await made.text("a.js"), "one\n2\n");
  made.edit("a.js", "one\ntwo\n");
  assert.deepEqual(made.changed, []);
  await made.text("b.yaml");
  made.edit("b.yaml", "z\n");
  made.edit("c.yml", "new\n");
  assert.deepEqual(made.changed, ["b.yaml", "c.yml"]);
  made.saved("b.yaml", new Blob(["z\n"]), null);
  made.edit("b.yaml", "z\n");
  assert.deepEqual(made.changed, ["c.yml"]);
});

test("lines that nobody has changed keep their ends, and a mark that is not the first stays", async () => {
  const made = folder({ "a.js": "one\r\ntwo\nthree\rfour\n\ufefffive" });
  assert.equal(await made.text("a.js"), "one\ntwo\nthree\nfour\n\ufefffive");
  const changes = { "one\n2\nmore\nthree\nfour\n\ufefffive": "one\r\n2\r\nmore\r\nthree\rfour\n\ufefffive", "one\nfour\n\ufefffive": "one\r\nfour\n\ufefffive", "one\ntwo\nthree\nfour\n\ufefffive\n": "one\r\ntwo\nthree\rfour\n\ufefffive\r\n", "": "" };
  for (const [text, file] of Object.entries(changes)) {
    made.edit("a.js", text);
    assert.equal(made.unsaved("a.js"), file);
    assert.equal(await made.text("a.js"), text);
  }
  const mixed = folder({ "b.js": "one\ntwo\rthree" });
  await mixed.text("b.js");
  mixed.edit("b.js", "one\ntwo\n\nthree");
  assert.equal(await mixed.text("b.js"), "one\ntwo\n\nthree");
});

test("a file that is no text in UTF-8 is not changed", async () => {
  for (const bytes of [[0xff, 0xfe, 0x61, 0], [0x61, 0, 0x62, 0]]) {
    const made = new Folder("codecs", new Map([["a.js", { file: new Blob([Uint8Array.from(bytes)]), handle: null }]]));
    await assert.rejects(made.text("a.js"), /a\.js is not in UTF-8/);
  }
});

test("a folder has what codecs are made of, within bounds", () => {
  const paths = ["codecs/a/b.js", "codecs/package.json", "codecs/picture.png", "codecs/node_modules/x/y.js", "codecs/.git/config.yml", "codecs/.github/workflows/ci.yml"];
  const taken = takeFiles(paths.map(inFolder));
  assert.deepEqual([taken.name, [...taken.blobs().keys()]], ["codecs", ["a/b.js", "package.json", ".github/workflows/ci.yml"]]);
  assert.deepEqual([...takeFiles([Object.assign(new Blob(["x"]), { name: "a.js", webkitRelativePath: "" })]).blobs().keys()], ["a.js"]);
  const many = Array.from({ length: 50_001 }, (_, at) => ({ name: `${at}.js`, webkitRelativePath: `codecs/${at}.js` }));
  assert.throws(() => takeFiles(many), /There are more than 50,000 files/);
});

test("the workbench gets files as bytes, and reads no more than a bound", () => {
  const tree = new Tree(({ bytes }) => {
    if (bytes === null) throw new Error("NotReadableError");
    return Uint8Array.from(bytes);
  });
  tree.set("a/b.js", { size: 2, bytes: [0x61, 0x62] });
  tree.set("a/wide.js", { size: 2, bytes: [0xff, 0xfe] });
  tree.set("large.json", { size: 2 ** 30, bytes: [] });
  tree.set("gone.js", { size: 1, bytes: null });
  const read = (file) => tree.answer({ read: { file } });
  assert.deepEqual(read("a/b.js"), { text: "ab" });
  assert.deepEqual(read("a/wide.js"), { bytes: "fffe" });
  assert.match(read("large.json").problem, /more than 16777216 bytes/);
  assert.match(read("gone.js").problem, /changed on disk, or is gone/);
  assert.deepEqual([read("none.js"), read("a").problem], ["missing", "it is not a regular file"]);
  const names = (directory) => tree.answer({ entries: { directory } }).entries?.map(({ name, isDir }) => `${name}${isDir ? "/" : ""}`);
  assert.deepEqual([names(""), names("a"), names("b")], [["a/", "large.json", "gone.js"], ["b.js", "wide.js"], undefined]);
  tree.set("a/b.js", { size: 1, bytes: [0x63] });
  assert.deepEqual(read("a/b.js"), { text: "c" });
});

test("an archive has the texts", () => {
  writeFileSync(process.env.ARCHIVE, zipped([["a/m\u00e9ter.js", "one\n"], ["empty.yml", ""], ["b.json", "\u20ac".repeat(100_000)]]));
});
