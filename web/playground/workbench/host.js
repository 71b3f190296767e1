// What the workbench asks of its page: to evaluate sources, to run messages, and to read files that somebody has opened.
// `workbench/browser` asks, in place of the server's sandbox and of a disk.

import { Failure, Sandbox } from "../sandbox/sandbox.js";

export class Host {
  #guest;
  /** A sandbox for each set of limits: those of the page, and two that the workbench makes of them. */
  #sandboxes = new Map();
  /** What is evaluated, with its sandbox, by number until the workbench forgets it. */
  #loaded = new Map();
  #last = 0;
  #tree = null;
  #heard;

  /** Runs the guest in `guest`; `heard` is called after each message, and each file that is read. */
  constructor(guest, heard) {
    [this.#guest, this.#heard] = [guest, heard];
  }

  /** The files that are read from now on. */
  open(tree) {
    this.#tree = tree;
  }

  /** Forgets what is evaluated: the workbench that would have is no more. */
  forgetAll() {
    this.#loaded.clear();
  }

  /** The answer to a request; null where none is expected. */
  answer({ load, call, forget, entries, read }) {
    if (load !== undefined) return this.#load(load);
    if (call !== undefined) return this.#call(call);
    if (forget === undefined) return this.#files({ entries, read });
    this.#loaded.delete(forget.functions);
    return null;
  }

  #files(question) {
    if (question.read !== undefined) this.#heard();
    return this.#tree === null ? "missing" : this.#tree.answer(question);
  }

  #load({ sources, limits }) {
    const sandbox = this.#sandbox(limits);
    try {
      const functions = sandbox.load(sources);
      const { dialects, loadFuel, keptBytes } = functions;
      this.#last += 1;
      this.#loaded.set(this.#last, { sandbox, functions });
      return { loaded: { functions: this.#last, dialects, loadFuel, keptBytes } };
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      return { failed: plain(failure) };
    }
  }

  #call({ functions: number, call }) {
    const { sandbox, functions } = this.#loaded.get(number);
    const { value, failure, warnings, logs, fuel, milliseconds } = sandbox.call(functions, { ...call, payload: Uint8Array.from(call.payload) });
    this.#heard();
    const bytes = value?.kind === "bytes" ? { bytes: [...value.bytes] } : {};
    return { called: { value: value === null ? null : { ...value, ...bytes }, failure: failure === null ? null : plain(failure), warnings, logs, fuel, milliseconds } };
  }

  #sandbox(limits) {
    const key = JSON.stringify(limits);
    if (!this.#sandboxes.has(key)) this.#sandboxes.set(key, new Sandbox(this.#guest, limits));
    return this.#sandboxes.get(key);
  }
}

function plain({ slot, kind, message, line, column }) {
  return { slot, kind, message, line, column };
}
