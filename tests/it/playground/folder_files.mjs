// What a folder of the page makes of files: which it takes, what it changes in them, and the archive that it saves, which is
// written to the path in the environment.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { Folder } from "../../../web/playground/folder/folder.js";
import { takeFiles } from "../../../web/playground/folder/pick.js";
import { saveFolder } from "../../../web/playground/folder/save.js";
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
  made.saved("b.yaml", "z\n", new Blob(["z\n"]), null);
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

/** A directory that keeps what is written into it; `hooks.written` is called in the middle. */
function directoryOf(texts, hooks) {
  let lastModified = 0;
  const files = new Map(Object.entries(texts).map(([name, text]) => [name, { text, lastModified }]));
  const getFile = (name) => async () => Object.assign(new Blob([files.get(name).text]), { lastModified: files.get(name).lastModified });
  const createWritable = (name) => async () => {
    let whole = "";
    const close = async () => {
      hooks.written(name);
      lastModified += 1;
      files.set(name, { text: whole, lastModified });
    };
    return { write: async (text) => (whole += text), close };
  };
  const getFileHandle = async (name, { create } = {}) => {
    if (!files.has(name) && !create) throw new Error("NotFoundError");
    if (!files.has(name)) files.set(name, { text: "", lastModified });
    return { getFile: getFile(name), createWritable: createWritable(name) };
  };
  return { files, getFileHandle, requestPermission: async () => "granted" };
}

async function opened(directory) {
  const handles = await Promise.all([...directory.files.keys()].map(async (name) => [name, await directory.getFileHandle(name)]));
  const files = await Promise.all(handles.map(async ([name, handle]) => [name, { file: await handle.getFile(), handle }]));
  return new Folder("codecs", new Map(files), directory);
}

test("what somebody types while a file is written is not saved yet", async () => {
  const hooks = {};
  const directory = directoryOf({ "a.js": "old" }, hooks);
  const made = await opened(directory);
  await made.text("a.js");
  for (const [later, changed] of [["newest", ["a.js"]], ["old", ["a.js"]], ["new", []]]) {
    made.edit("a.js", "new");
    hooks.written = () => made.edit("a.js", later);
    assert.deepEqual(await saveFolder(made), { written: ["a.js"], downloaded: [], name: null });
    assert.deepEqual([directory.files.get("a.js").text, await made.text("a.js"), made.changed], ["new", later, changed]);
    hooks.written = () => {};
    await saveFolder(made);
    assert.deepEqual([directory.files.get("a.js").text, made.changed], [later, []]);
    made.edit("a.js", "between");
    await saveFolder(made);
  }
});

test("a new file that could not be written can be saved once more, and another's is not overwritten", async () => {
  const full = (name) => {
    if (name === "b.yml") throw new Error("the disk is full");
  };
  const hooks = { written: full };
  const directory = directoryOf({}, hooks);
  const made = await opened(directory);
  made.edit("a.yml", "a");
  made.edit("b.yml", "b");
  await assert.rejects(saveFolder(made), /^Error: b\.yml cannot be written: the disk is full$/);
  assert.deepEqual([directory.files.get("a.yml").text, directory.files.get("b.yml").text, made.changed], ["a", "", ["b.yml"]]);
  hooks.written = () => {};
  assert.deepEqual((await saveFolder(made)).written, ["b.yml"]);
  directory.files.set("c.yml", { text: "theirs", lastModified: 0 });
  made.edit("c.yml", "mine");
  await assert.rejects(saveFolder(made), /c\.yml is there already/);
  directory.files.set("a.yml", { text: "theirs", lastModified: 9 });
  await made.text("a.yml");
  made.edit("a.yml", "mine");
  await assert.rejects(saveFolder(made), /a\.yml has changed on disk/);
  assert.deepEqual([...directory.files.values()].map(({ text }) => text), ["theirs", "b", "theirs"]);
});

test("files that were opened alone are saved after the browser has asked for each", async () => {
  const made = await opened(directoryOf({ "a.js": "old" }, { written: () => {} }));
  made.handle.requestPermission = () => Promise.reject(Object.assign(new Error("no gesture"), { name: "SecurityError" }));
  await made.text("a.js");
  made.edit("a.js", "new");
  await assert.rejects(saveFolder(made), /Nothing was saved, because the browser wants to ask once more: save again\./);
  made.handle.requestPermission = async () => "denied";
  await assert.rejects(saveFolder(made), /the browser was not allowed to write/);
  assert.deepEqual(made.changed, ["a.js"]);
});

test("a folder has what codecs are made of, within bounds", () => {
  const paths = ["codecs/a/b.js", "codecs/package.json", "codecs/picture.png", "codecs/node_modules/x/y.js", "codecs/.git/config.yml", "codecs/.github/workflows/ci.yml"];
  const taken = takeFiles(paths.map(inFolder));
  assert.deepEqual([taken.name, [...taken.blobs().keys()]], ["codecs", ["a/b.js", "package.json", ".github/workflows/ci.yml"]]);
  assert.deepEqual([...takeFiles([Object.assign(new Blob(["x"]), { name: "a.js", webkitRelativePath: "" })]).blobs().keys()], ["a.js"]);
  const many = Array.from({ length: 50_001 }, (_, at) => ({ name: `${at}.js`, webkitRelativePath: `codecs/${at}.js` }));
  assert.throws(() => takeFiles(many), /There are more than 50,000 files/);
  const below = (depth) => takeFiles([inFolder(`codecs/${"a/".repeat(depth)}b.js`)]);
  assert.equal(below(32).blobs().size, 1);
  assert.throws(() => below(33), /nested more than 32 deep/);
  assert.equal(takeFiles([inFolder(`codecs/node_modules/${"a/".repeat(33)}b.js`)]).blobs().size, 0);
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
