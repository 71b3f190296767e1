// A folder that somebody has opened, or single files: what is in them, and what has been changed and is not saved yet.

const BYTE_ORDER_MARK = "\ufeff";
const MARK_AT_START = /^\ufeff/;
const LINE_END = /\r\n?|\n/;
const LINE_ENDS = /\r\n?|\n/g;
/** Lines, each with its end. */
const LINES = /[^\r\n]*(?:\r\n?|\n)|[^\r\n]+$/g;

export class Folder {
  /** The files by their paths: each has the `file`, and the `handle` that writes it, or null. */
  #files;
  /** Texts that were read, and those that are not saved yet, by their paths. */
  #texts = new Map();
  #edits = new Map();

  /** `handle` is that of the folder, where the browser gives one. */
  constructor(name, files, handle = null) {
    [this.name, this.#files, this.handle] = [name, files, handle];
  }

  /** The files as they are to be now, by their paths. */
  blobs() {
    const blobs = [...this.#files].map(([path, { file }]) => [path, file]);
    return new Map([...blobs, ...[...this.#edits.keys()].map((path) => [path, this.blob(path)])]);
  }

  blob(path) {
    return this.#edits.has(path) ? new Blob([this.#edits.get(path)]) : this.#files.get(path).file;
  }

  has(path) {
    return this.#edits.has(path) || this.#files.has(path);
  }

  /** The file as it was opened, and its handle; undefined if it is a new one. */
  entry(path) {
    return this.#files.get(path);
  }

  /** The text of a file as it is to be now, with the line ends of pages. Fails if it is none. */
  async text(path) {
    if (!this.#texts.has(path) && this.#files.has(path)) this.#texts.set(path, await textOf(path, this.#files.get(path).file));
    return ofPage(this.#edits.get(path) ?? this.#texts.get(path));
  }

  /** Another text for a file that was read, or a new file. */
  edit(path, text) {
    const before = this.#texts.get(path);
    const after = before === undefined ? text : asBefore(before, text);
    if (after === before || (before !== undefined && ofPage(before) === text)) this.#edits.delete(path);
    else this.#edits.set(path, after);
  }

  /** The paths of files that are not saved yet. */
  get changed() {
    return [...this.#edits.keys()].sort();
  }

  /** The text that is to be saved, with the line ends that the file had. */
  unsaved(path) {
    return this.#edits.get(path);
  }

  /** Hears that a file was saved with this text: what somebody has typed since is not. */
  saved(path, text, file, handle) {
    const now = this.#edits.get(path) ?? this.#texts.get(path);
    this.#texts.set(path, text);
    if (now === text) this.#edits.delete(path);
    else this.#edits.set(path, now);
    this.#files.set(path, { file, handle });
  }
}

async function textOf(path, file) {
  const bytes = await file.arrayBuffer().catch(() => {
    throw new Error(`${path} has changed on disk, or is gone: open it again.`);
  });
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // It is told below.
  }
  throw new Error(`${path} is not in UTF-8, so that it cannot be changed here.`);
}

/** A text without the byte order mark, and with the line ends that fields of pages have. */
function ofPage(text) {
  return text.replace(MARK_AT_START, "").replace(LINE_ENDS, "\n");
}

/**
 * A text with the byte order mark and the line ends of the one before: the lines in front of what is another, and behind
 * that, stay as they are, and the rest ends as the first line did.
 */
function asBefore(before, text) {
  const [old, lines] = [before.replace(MARK_AT_START, "").match(LINES) ?? [], text.match(LINES) ?? []];
  const isSame = (one, other) => one.replace(LINE_ENDS, "\n") === other;
  const end = LINE_END.exec(before)?.[0] ?? "\n";
  const most = Math.min(old.length, lines.length);
  let [first, last] = [0, 0];
  while (first < most && isSame(old[first], lines[first])) first += 1;
  while (last < most - first && isSame(old.at(-1 - last), lines.at(-1 - last))) last += 1;
  const others = lines.slice(first, lines.length - last).map((line) => line.replace("\n", end));
  const mark = before.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  const all = mark + [...old.slice(0, first), ...others, ...old.slice(old.length - last)].join("");
  // A line that ends with a carriage return alone, and an empty one behind it, would be one.
  return ofPage(all) === text ? all : mark + text.replaceAll("\n", end);
}
