// The workbench as `workbench/browser` compiles it: each question and its answer are JSON in the memory of the module.

import { Host } from "./host.js";

/** What WebAssembly's system interface means by "there is no such function here". */
const ENOSYS = 52;
const NANOSECONDS = 1e6;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class WorkbenchModule {
  #module;
  #host;
  /** Null before the first question, and after one that the module did not survive. */
  #exports = null;
  /** The answer of the host that the module has not taken yet. */
  #reply = new Uint8Array();

  /** `module` is compiled from `workbench.wasm`, whose sandbox is the guest in `guest`; `heard` is called after each message. */
  constructor(module, guest, heard = () => {}) {
    [this.#module, this.#host] = [module, new Host(guest, heard)];
  }

  /** The files that questions are about from now on. */
  open(tree) {
    this.#host.open(tree);
  }

  /** The answer to a question (`workbench/browser/src/answer.rs`) within limits; throws an error that says why there is none. */
  answer(question, limits) {
    let told;
    try {
      told = this.#ask(encoder.encode(JSON.stringify({ limits, question })));
    } catch (error) {
      this.#exports = null;
      this.#host.forgetAll();
      throw new Error(reasonOf(error), { cause: error });
    }
    if (told.problem !== undefined) throw new Error(told.problem);
    return told.answer;
  }

  #ask(question) {
    this.#exports ??= this.#start();
    const at = this.#exports.reserve(question.length);
    this.#bytes(at, question.length).set(question);
    const reply = BigInt.asUintN(64, this.#exports.answer_request(at, question.length));
    const [place, length] = [Number(reply >> 32n), Number(reply & 0xffffffffn)];
    const text = decoder.decode(this.#bytes(place, length));
    this.#exports.release(place, length);
    return JSON.parse(text);
  }

  #start() {
    return new WebAssembly.Instance(this.#module, {
      page: {
        ask_page: (at, length) => {
          const request = JSON.parse(decoder.decode(this.#bytes(at >>> 0, length)));
          this.#reply = encoder.encode(JSON.stringify(this.#host.answer(request)));
          return this.#reply.length;
        },
        take_reply: (at) => this.#bytes(at >>> 0, this.#reply.length).set(this.#reply),
      },
      wasi_snapshot_preview1: this.#system(),
    }).exports;
  }

  /** What the standard library needs: a clock, and numbers that seed its hash tables. Nothing else is there. */
  #system() {
    const missing = () => ENOSYS;
    const zeros = (...places) => {
      for (const at of places) this.#bytes(at >>> 0, 4).fill(0);
      return 0;
    };
    return {
      clock_time_get: (clock, precision, at) => {
        new DataView(this.#exports.memory.buffer).setBigUint64(at >>> 0, BigInt(Math.round(performance.now() * NANOSECONDS)), true);
        return 0;
      },
      random_get: (at, length) => {
        crypto.getRandomValues(this.#bytes(at >>> 0, length));
        return 0;
      },
      environ_sizes_get: zeros,
      environ_get: () => 0,
      fd_write: missing,
      proc_exit: () => {
        throw new Error("the workbench stopped");
      },
    };
  }

  #bytes(at, length) {
    return new Uint8Array(this.#exports.memory.buffer, at, length);
  }
}

/** Says why the module did not survive a question. */
function reasonOf(error) {
  // Firefox has an error of its own where a stack does not suffice.
  if (error instanceof RangeError || error.name === "InternalError") return "the source is nested too deeply for this browser";
  return error instanceof WebAssembly.RuntimeError ? "the workbench stopped" : error.message;
}
