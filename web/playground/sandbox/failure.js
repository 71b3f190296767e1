// The reasons why functions have no result, in the words of the server (`runtime/src/contract/failure.rs`).

/** What the guest says before and after the name of a module that it refuses to import. */
const REFUSED_IMPORT = /cannot import '([\s\S]*?)': only 'buffer' can be imported/;

/** The failure of a function: `line` and `column` count from 1, the column in UTF-16 units; null if unknown. */
export class Failure {
  constructor(slot, kind, message, line = null, column = null) {
    Object.assign(this, { slot, kind, message, line, column, functionName: null });
  }

  /** One sentence for the author of the function. */
  get text() {
    const subject = this.functionName !== null && this.kind !== "syntax" ? `\`${this.functionName}\`` : `the ${this.slot}`;
    if (this.kind === "syntax") return `${subject} cannot be loaded${this.position}: ${this.message}`;
    if (this.kind === "thrown") return `${subject} failed${this.position}: ${this.message}`;
    return `${subject} ${this.message}${this.position}`;
  }

  /** The position in parentheses, with a space before it; empty if unknown. */
  get position() {
    if (this.line === null) return "";
    return this.column === null ? ` (line ${this.line})` : ` (line ${this.line}, column ${this.column})`;
  }
}

/** The failure of a call whose sandbox did what it must not. */
export function broken(slot, reason) {
  return new Failure(slot, "broken", `broke its sandbox: ${reason}`);
}

/** Adds the line to the failure of a refused import: the guest links modules without knowing where they are named. */
export function locateImport(failure, text) {
  const name = failure.line === null ? REFUSED_IMPORT.exec(failure.message)?.[1] : undefined;
  if (name === undefined) return;
  const index = text.split("\n").findIndex((line) => imports(line, name));
  if (index >= 0) failure.line = index + 1;
}

/** True if a line names the module behind `from` or `import`. */
function imports(line, name) {
  for (let place = line.indexOf(name); place >= 0; place = line.indexOf(name, place + name.length || place + 1)) {
    const before = line.slice(0, place);
    const isQuoted = /['"]$/.test(before) && /^['"]/.test(line.slice(place + name.length));
    const words = before.slice(0, -1).trimEnd();
    if (isQuoted && /(from|import)$/.test(words) && !words.trimStart().startsWith("//")) return true;
    if (name === "") return false;
  }
  return false;
}
