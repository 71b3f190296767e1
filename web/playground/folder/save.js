// Saves what has changed: where it was opened if the browser may write there, and as a download otherwise.

import { save } from "../view/examples.js";
import { zipped } from "./zip.js";

/** Saves the files of a folder. Returns the paths that were `written`, and those that were `downloaded`, with the `name`. */
export async function saveFolder(folder) {
  // New files come last: none is made before it is known that the others can be written.
  const isNew = (path) => Number(folder.entry(path) === undefined);
  const paths = folder.changed.sort((one, other) => isNew(one) - isNew(other));
  // Somebody may go on to type while the browser asks and writes.
  const texts = new Map(paths.map((path) => [path, folder.unsaved(path)]));
  const handles = new Map();
  for (const path of paths) handles.set(path, await writable(folder, path));
  const written = paths.filter((path) => handles.get(path) !== null);
  const downloaded = paths.filter((path) => handles.get(path) === null);
  for (const path of written) {
    const [text, handle] = [texts.get(path), handles.get(path)];
    const file = await write(handle, text).catch(({ message }) => {
      throw new Error(`${path} cannot be written: ${message}`);
    });
    folder.saved(path, text, file, handle);
  }
  return { written, downloaded, name: download(folder, downloaded, texts) };
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
  // An empty one may be left of a time when it could not be written.
  const isTaken = known !== null && (await known.getFile()).size > 0;
  if (isTaken) throw new Error(`${path} is there already. Nothing was saved: open the folder again.`);
  return directory.getFileHandle(name, { create: true });
}

async function permit(handle) {
  const permission = await handle.requestPermission?.({ mode: "readwrite" }).catch((error) => {
    // It asks for each file that was opened alone, and only shortly after a click.
    if (error.name === "SecurityError") throw new Error("Nothing was saved, because the browser wants to ask once more: save again.", { cause: error });
    throw error;
  });
  if (permission !== undefined && permission !== "granted") throw new Error("Nothing was saved: the browser was not allowed to write.");
}

/** Writes a file, and returns it. */
async function write(handle, text) {
  const stream = await handle.createWritable();
  await stream.write(text);
  // What was there before stays until now.
  await stream.close();
  return handle.getFile();
}

/** Downloads files: several as one. Returns the name. */
function download(folder, paths, texts) {
  if (paths.length === 0) return null;
  const all = paths.map((path) => [path, texts.get(path)]);
  const name = paths.length === 1 ? paths[0].split("/").pop() : `${folder.name}.zip`;
  if (paths.length === 1) save(name, all[0][1]);
  else save(name, zipped(all), "application/zip");
  for (const [path, text] of all) folder.saved(path, text, new Blob([text]), null);
  return name;
}
