// The page's side of the worker: gives it the newest request, and ends it when it has gone quiet.

/** A worker that is quiet for so long is in an expensive message; a newer request does not wait for that. */
const QUIET_MS_MAX = 1500;
/** Nothing takes so long but by mistake, as fuel ends a message first. */
const STUCK_MS_MAX = 30_000;

export class Runner {
  #guest;
  #limits;
  #report;
  #worker;
  #id = 0;
  /** When the worker last said something, and the request that it has not finished. */
  #heard = 0;
  #pending = null;

  /** Runs the guest in `bytes`; `report` gets what comes of the newest request. */
  constructor(bytes, limits, report) {
    this.#guest = bytes;
    this.#limits = limits;
    this.#report = report;
    this.#start();
    setInterval(() => this.#endStuck(), 1000);
  }

  /** Asks for the outcomes of calls; forgets what was asked before. */
  ask(request) {
    this.#id += 1;
    const isQuiet = this.#pending !== null && performance.now() - this.#heard > QUIET_MS_MAX;
    if (isQuiet) this.#start();
    if (isQuiet || this.#pending === null) this.#heard = performance.now();
    this.#pending = { id: this.#id, ...request };
    this.#worker.postMessage(this.#pending);
  }

  #start() {
    this.#worker?.terminate();
    const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => this.#hear(data);
    worker.onerror = (event) => this.#report({ kind: "broken", reason: event.message ?? "its scripts cannot be loaded" });
    worker.postMessage({ guest: this.#guest, limits: this.#limits });
    this.#worker = worker;
  }

  #hear(report) {
    this.#heard = performance.now();
    if (report.id !== this.#id) return;
    if (report.kind === "done") this.#pending = null;
    this.#report(report);
  }

  #endStuck() {
    if (this.#pending === null || performance.now() - this.#heard < STUCK_MS_MAX) return;
    this.#pending = null;
    this.#start();
    this.#report({ kind: "broken", reason: "a message took too long, and was ended" });
  }
}
