// The files that somebody has opened, as the workbench asks for them (`workbench/browser/src/page_files.rs`). Nothing is read
// before it is asked for.

/** The largest file that is read, in bytes. */
const FILE_BYTES_MAX = 16 << 20;
/** What is kept of files that were read, in bytes: each is read several times in a row. */
const KEPT_BYTES_MAX = 16 << 20;

export class Tree {
  /** The files by their paths, and the names in each directory, with whether they are directories. */
  #files = new Map();
  #directories = new Map([["", new Map()]]);
  #bytesOf;
  #kept = new Map();
  #keptBytes = 0;

  /** `bytesOf` reads a file, which has a `size`, at once. */
  constructor(bytesOf) {
    this.#bytesOf = bytesOf;
  }

  /** Adds a file, or puts another one in its place. */
  set(path, file) {
    this.#files.set(path, file);
    this.#kept.delete(path);
    let [below, isDirectory] = [path, false];
    while (below !== "") {
      const at = below.lastIndexOf("/");
      const [above, name] = [below.slice(0, Math.max(at, 0)), below.slice(at + 1)];
      if (!this.#directories.has(above)) this.#directories.set(above, new Map());
      this.#directories.get(above).set(name, isDirectory);
      [below, isDirectory] = [above, true];
    }
  }

  /** The answer to a question for a directory, or for a file. */
  answer({ entries, read }) {
    return entries === undefined ? this.#read(read.file) : this.#entries(entries.directory);
  }

  #entries(directory) {
    const entries = this.#directories.get(directory);
    return entries === undefined ? "missing" : { entries: [...entries].map(([name, isDir]) => ({ name, isDir })) };
  }

  #read(path) {
    const file = this.#files.get(path);
    if (file === undefined) return this.#directories.has(path) ? { problem: "it is not a regular file" } : "missing";
    if (file.size > FILE_BYTES_MAX) return { problem: `it has more than ${FILE_BYTES_MAX} bytes` };
    try {
      return this.#kept.get(path) ?? this.#keep(path, inJson(this.#bytesOf(file)), file.size);
    } catch {
      return { problem: "it has changed on disk, or is gone: open it again" };
    }
  }

  #keep(path, answer, size) {
    if (this.#keptBytes + size > KEPT_BYTES_MAX) {
      this.#kept.clear();
      this.#keptBytes = 0;
    }
    this.#kept.set(path, answer);
    this.#keptBytes += size;
    return answer;
  }
}

/** Bytes as JSON has them: as a text, or in hexadecimal if they are none. */
function inJson(bytes) {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { bytes: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") };
  }
}
