// Takes the folder or the files that somebody picks or drops, within bounds. Browsers differ in what they give: a handle
// that can write, an entry that can be read, or files.

import { Folder } from "./folder.js";

/** Bounds of a folder: its files, those that are no codecs included, and directories in each other. */
const FILES_MAX = 50_000;
const DEPTH_MAX = 32;
/** Directories that hold no codecs of the author (`workbench/src/layout/dir.rs`). */
const SKIPPED = new Set([".git", "node_modules", "target"]);
/** The ends of files that the workbench reads. */
const ENDS = new Set(["js", "mjs", "cjs", "txt", "json", "jsonl", "yaml", "yml"]);

/** A folder that is picked; null if nobody picks one, and undefined where the browser cannot do that. */
export async function pickFolder() {
  if (window.showDirectoryPicker === undefined) return undefined;
  const handle = await unlessStopped(window.showDirectoryPicker());
  return handle && folderOf([handle]);
}

/** The same for files. */
export async function pickFiles() {
  if (window.showOpenFilePicker === undefined) return undefined;
  const handles = await unlessStopped(window.showOpenFilePicker({ multiple: true }));
  return handles && folderOf(handles);
}

/** The files of a field, which may be those of a folder. */
export function takeFiles(list) {
  const gathered = new Gathered();
  const [first] = list;
  const top = first.webkitRelativePath?.split("/")[0] || null;
  for (const file of list) {
    const path = top === null ? file.name : file.webkitRelativePath.slice(top.length + 1);
    const above = path.split("/").slice(0, -1);
    if (above.some((name) => SKIPPED.has(name))) continue;
    gathered.go(above.length);
    gathered.count();
    gathered.add(path, file, null);
  }
  return new Folder(top ?? nameOf(list), gathered.files);
}

/** What is dropped; null if that is no file. It has to be taken before anything is waited for. */
export async function takeDropped(transfer) {
  const items = [...transfer.items].filter(({ kind }) => kind === "file");
  const nodes = items.map((item) => item.getAsFileSystemHandle?.() ?? item.webkitGetAsEntry());
  const given = (await Promise.all(nodes)).filter((node) => node !== null);
  return given.length === 0 ? null : folderOf(given);
}

/** The folder that handles or entries are: one that is a directory is the folder, others are in one. */
async function folderOf(nodes) {
  const gathered = new Gathered();
  const [first] = nodes;
  const isOne = nodes.length === 1 && isDirectory(first);
  if (isOne) await gathered.take(first, "", 0);
  else for (const node of nodes) await gathered.one(node, "", 0);
  return new Folder(nameOf(nodes), gathered.files, isOne && first.getFileHandle !== undefined ? first : null);
}

/** The name of what is opened. */
function nameOf(nodes) {
  return nodes.length === 1 ? nodes[0].name : "files";
}

class Gathered {
  files = new Map();
  #count = 0;

  count() {
    this.#count += 1;
    if (this.#count > FILES_MAX) throw new Error(`There are more than ${FILES_MAX.toLocaleString("en")} files: open a folder inside.`);
  }

  add(path, file, handle) {
    if (ENDS.has(path.split(".").pop().toLowerCase())) this.files.set(path, { file, handle });
  }

  go(depth) {
    if (depth > DEPTH_MAX) throw new Error(`Directories are nested more than ${DEPTH_MAX} deep: open a folder inside.`);
  }

  /** Takes all of a directory. */
  async take(directory, path, depth) {
    this.go(depth);
    for await (const node of within(directory)) await this.one(node, path, depth);
  }

  async one(node, above, depth) {
    this.count();
    const path = above + node.name;
    if (isDirectory(node)) {
      if (!SKIPPED.has(node.name)) await this.take(node, `${path}/`, depth + 1);
    } else if (ENDS.has(path.split(".").pop().toLowerCase())) {
      const file = await fileOf(node).catch(() => null);
      // A link that leads nowhere.
      if (file !== null) this.add(path, file, node.createWritable === undefined ? null : node);
    }
  }
}

function isDirectory(node) {
  return node.kind === "directory" || node.isDirectory === true;
}

function fileOf(node) {
  return node.getFile === undefined ? new Promise((resolve, reject) => node.file(resolve, reject)) : node.getFile();
}

async function* within(directory) {
  if (directory.values !== undefined) return yield* directory.values();
  const reader = directory.createReader();
  // It gives some at a time.
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    yield* some;
  }
}

/** What a picker gives; null if it was closed. */
async function unlessStopped(picked) {
  try {
    return await picked;
  } catch (error) {
    if (error.name === "AbortError") return null;
    throw new Error(`The browser does not open it: ${error.message}`, { cause: error });
  }
}
