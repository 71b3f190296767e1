// The page's side of the workbench: `functions lint` and `port`, in a worker that starts with the first question.

/** More uplinks are not run: each runs once for every network. */
const UPLINKS_MAX = 8;
/** After this time, a question counts as one without an answer, in milliseconds. */
const ANSWER_MS_MAX = 60_000;

export class Workbench {
  #given;
  #worker = null;
  #id = 0;
  /** How questions that wait for an answer end, by their number. */
  #waiting = new Map();

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

  /** Ends what is asked; nothing that waits gets an answer. */
  stop(reason) {
    this.#worker?.terminate();
    this.#worker = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new Error(reason));
  }

  #ask(question) {
    this.#worker ??= this.#start();
    this.#id += 1;
    const id = this.#id;
    const timer = setTimeout(() => this.stop("that took too long, and was ended"), ANSWER_MS_MAX);
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#worker.postMessage({ id, question });
    return answer.finally(() => clearTimeout(timer));
  }

  #start() {
    const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data: { id, answer, problem } }) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (problem === undefined) waiting?.resolve(answer);
      else waiting?.reject(new Error(problem));
    };
    worker.onerror = () => this.stop("its scripts cannot be loaded");
    worker.postMessage(this.#given);
    return worker;
  }
}

/** What the workbench gets of a codec and its messages. */
export function submitted({ text, dialect }, messages) {
  const readable = messages.filter(({ problem }) => problem === undefined).slice(0, UPLINKS_MAX);
  const now = Date.now();
  const uplinks = readable.map(({ line, port, payload, timeMs }) => ({ line, port, payload: [...payload], timeMs: timeMs ?? now }));
  return { text, dialect, uplinks };
}
