// The page's side of the workbench: `functions lint`, `port`, `fuzz` and `test`, in a worker that starts with the first
// question.

/** Examples of a codec: more of them are not read. */
export const EXAMPLES_MAX = 1024;
/** After this time without a word, a question counts as one without an answer, in milliseconds. */
const QUIET_MS_MAX = 30_000;

export class Workbench {
  #given;
  #worker = null;
  /** Until then, it may be on a slow link. */
  #isLoaded = false;
  #id = 0;
  /** The questions that wait for an answer, by their number. */
  #waiting = new Map();
  #timer = null;
  /** The files that somebody has opened, by their paths. */
  #files = new Map();

  /** `sandbox` has the guest and its limits. */
  constructor(sandbox) {
    this.#given = sandbox;
  }

  /** The networks for which codecs are judged. */
  networks() {
    return this.#ask("networks");
  }

  /** The verdicts on a codec, one for each network. */
  lint(codec) {
    return this.#ask({ lint: codec });
  }

  /** The codec as a network takes it, and the proof. */
  port(codec, target) {
    return this.#ask({ port: { codec, target } });
  }

  /** The faults of a codec with random payloads; `heard` gets the number of messages that have run. */
  fuzz(codec, seed, count, heard) {
    return this.#ask({ fuzz: { codec, seed, count } }, heard);
  }

  /** Opens files, by their paths, in place of those that were opened before. */
  openFiles(files) {
    this.#files = new Map(files);
    this.#worker?.postMessage({ files, isAnother: true });
  }

  /** Puts another file in the place of one, or a new one. */
  putFile(path, file) {
    this.#files.set(path, file);
    this.#worker?.postMessage({ files: new Map([[path, file]]) });
  }

  /** The codecs of these files, and what cannot be read; `heard` gets the number of files that were read. */
  codecs(heard) {
    return this.#ask("codecs", heard);
  }

  /** One of them, by its origin, with its payloads. */
  openCodec(origin) {
    return this.#ask({ openCodec: origin });
  }

  /** What came of its examples; `text` is that of the codec if it is another one than in the files, or null. */
  testCodec(origin, text, heard) {
    return this.#ask({ testCodec: { origin, text } }, heard);
  }

  /** The verdicts on it, one for each network. */
  lintCodec(origin) {
    return this.#ask({ lintCodec: origin });
  }

  /** Both of several codecs in one directory, which is read once: the `report` and the `verdicts` of each, or neither. */
  compareCodecs(origins) {
    return this.#ask({ compareCodecs: origins });
  }

  /** The texts of the files of its examples, expecting what it returns. */
  updateExamples(origin, text) {
    return this.#ask({ updateExamples: { origin, text } });
  }

  /** The text of the file of its examples with payloads as further ones, each with what the codec returns for it. */
  addExamples(origin, text, payloads) {
    return this.#ask({ addExamples: { origin, text, payloads } });
  }

  /** A new file in a layout, with payloads and fields as examples of a codec whose file is `script`. */
  newExamples(layout, script, codec, payloads, downlink) {
    return this.#ask({ newExamples: { layout, script, codec, payloads, downlink } });
  }

  /** The file that tests codecs in CI. */
  ciFile() {
    return this.#ask("ciFile");
  }

  /** Ends what is asked; nothing that waits gets an answer. The errors have `isAway` if it could not be loaded. */
  stop(reason, isAway = false) {
    clearTimeout(this.#timer);
    this.#worker?.terminate();
    [this.#worker, this.#isLoaded] = [null, false];
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(Object.assign(new Error(reason), { isAway }));
  }

  #ask(question, heard = () => {}) {
    this.#worker ??= this.#start();
    this.#id += 1;
    const id = this.#id;
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, heard }));
    this.#watch();
    this.#worker.postMessage({ id, question });
    return answer;
  }

  /** Ends a worker that goes quiet while somebody waits. */
  #watch() {
    clearTimeout(this.#timer);
    if (this.#isLoaded && this.#waiting.size > 0) this.#timer = setTimeout(() => this.stop("a message took too long, and was ended"), QUIET_MS_MAX);
  }

  #hear(report) {
    // Another worker tries again to load it.
    if (report.broken !== undefined) return this.stop(report.broken, true);
    if (report.isLoaded) this.#isLoaded = true;
    else this.#tell(report);
    return this.#watch();
  }

  #tell({ id, messages, answer, problem }) {
    const waiting = this.#waiting.get(id);
    if (messages !== undefined) return waiting?.heard(messages);
    this.#waiting.delete(id);
    return problem === undefined ? waiting?.resolve(answer) : waiting?.reject(new Error(problem));
  }

  #start() {
    const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => this.#hear(data);
    worker.onerror = () => this.stop("its scripts cannot be loaded", true);
    worker.postMessage(this.#given);
    worker.postMessage({ files: this.#files });
    return worker;
  }
}

/** What the workbench gets of a codec and its first messages. */
export function submitted({ text, dialect }, messages, most = EXAMPLES_MAX) {
  const readable = messages.filter(({ problem }) => problem === undefined).slice(0, most);
  const now = Date.now();
  const uplinks = readable.map(({ line, port, payload, timeMs }) => ({ line, port, payload: [...payload], timeMs: timeMs ?? now }));
  return { text: wellFormed(text), dialect, uplinks };
}

/** A text as UTF-8 has it, and so the sandbox: JSON would escape half of a character, which no other reader takes. */
function wellFormed(text) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text));
}
