// Saves what has changed: where it was opened if the browser may write there, and as a download otherwise.

import { save } from "../view/examples.js";
import { zipped } from "./zip.js";

/** Saves the files of a folder. Returns the paths that were `written`, and those that were `downloaded`, with the `name`. */
export async function saveFolder(folder) {
  // New files come last: none is made before it is known that the others can be written.
  const isNew = (path) => Number(folder.entry(path) === undefined);
  const paths = folder.changed.sort((one, other) => isNew(one) - isNew(other));
  const handles = new Map();
  for (const path of paths) handles.set(path, await writable(folder, path));
  const written = paths.filter((path) => handles.get(path) !== null);
  const downloaded = paths.filter((path) => handles.get(path) === null);
  for (const path of written) {
    const handle = handles.get(path);
    await write(handle, folder.unsaved(path));
    folder.saved(path, await handle.getFile(), handle);
  }
  return { written, downloaded, name: download(folder, downloaded) };
}

/** The handle that writes a file; null if there is none. Fails if somebody else has written it since it was opened. */
async function writable(folder, path) {
  const entry = folder.entry(path);
  if (entry === undefined) return folder.handle === null ? null : create(folder.handle, path);
  if (entry.handle === null) return null;
  await permit(folder.handle ?? entry.handle);
  const now = await entry.handle.getFile().catch(() => null);
  const isSame = now !== null && now.lastModified === entry.file.lastModified && now.size === entry.file.size;
  if (!isSame) throw new Error(`${path} has changed on disk since it was opened. Nothing was saved: open it again, and keep a copy of your text.`);
  return entry.handle;
}

/** The handle of a new file. */
async function create(top, path) {
  await permit(top);
  const names = path.split("/");
  const name = names.pop();
  let directory = top;
  for (const below of names) directory = await directory.getDirectoryHandle(below, { create: true });
  const known = await directory.getFileHandle(name).catch(() => null);
  if (known !== null) throw new Error(`${path} is there already. Nothing was saved: open the folder again.`);
  return directory.getFileHandle(name, { create: true });
}

async function permit(handle) {
  const permission = await handle.requestPermission?.({ mode: "readwrite" });
  if (permission !== undefined && permission !== "granted") throw new Error("Nothing was saved: the browser was not allowed to write.");
}

async function write(handle, text) {
  const stream = await handle.createWritable();
  await stream.write(text);
  // What was there before stays until now.
  await stream.close();
}

/** Downloads files: several as one. Returns the name. */
function download(folder, paths) {
  if (paths.length === 0) return null;
  const texts = paths.map((path) => [path, folder.unsaved(path)]);
  const name = paths.length === 1 ? paths[0].split("/").pop() : `${folder.name}.zip`;
  if (paths.length === 1) save(name, texts[0][1]);
  else save(name, zipped(texts), "application/zip");
  for (const [path, text] of texts) folder.saved(path, new Blob([text]), null);
  return name;
}
