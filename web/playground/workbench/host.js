// What the workbench asks of its page: to evaluate sources, and to run messages. `workbench/browser/runtime` asks, in
// place of the server's sandbox.

import { Failure, Sandbox } from "../sandbox/sandbox.js";

export class Host {
  #guest;
  /** A sandbox for each set of limits: those of the page, and two that the workbench makes of them. */
  #sandboxes = new Map();
  /** What is evaluated, with its sandbox, by number until the workbench forgets it. */
  #loaded = new Map();
  #last = 0;
  #heard;

  /** Runs the guest in `guest`; `heard` is called after each message. */
  constructor(guest, heard) {
    [this.#guest, this.#heard] = [guest, heard];
  }

  /** Forgets what is evaluated: the workbench that would have is no more. */
  forgetAll() {
    this.#loaded.clear();
  }

  /** The answer to a request; null where none is expected. */
  answer({ load, call, forget }) {
    if (load !== undefined) return this.#load(load);
    if (call !== undefined) return this.#call(call);
    this.#loaded.delete(forget.functions);
    return null;
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
