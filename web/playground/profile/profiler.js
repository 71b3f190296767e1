// Runs a message once more, in a guest that reports its steps, and says what each line of the source cost. Such a message
// uses exactly the fuel that it uses in the guest as it is.

import { Failure, Sandbox } from "../sandbox/sandbox.js";
import { Recorder } from "./recorder.js";
import { TABLE, instrument } from "./instrument.js";
import { Steps } from "./steps.js";

/** What ends a message before its function has returned. */
const LIMITS = ["fuel", "time", "memory"];
/**
 * A module with one function, which takes the fuel that is left as a number of 64 bits, and calls the host with a number
 * that needs no memory of its own: (i64, i32, i32) to (f64, i32, i32).
 */
const STEP_MODULE = Uint8Array.of(
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 13, 2, 0x60, 3, 0x7c, 0x7f, 0x7f, 0, 0x60, 3, 0x7e, 0x7f, 0x7f, 0],
  ...[2, 5, 1, 0, 0, 0, 0],
  ...[3, 2, 1, 1],
  ...[7, 4, 1, 0, 0, 1],
  ...[10, 13, 1, 11, 0, 0x20, 0, 0xb9, 0x20, 1, 0x20, 2, 0x10, 0, 0x0b],
);

export class Profiler {
  #limits;
  #sandbox;
  #recorder = null;
  /** The functions whose steps were listed last, and these. */
  #functions = null;
  #steps = null;

  /** A profiler of the guest in `bytes`. */
  constructor(bytes, limits) {
    const report = (left, stackPointer, address) => this.#recorder?.step(left, stackPointer >>> 0, address >>> 0);
    const step = new WebAssembly.Instance(new WebAssembly.Module(STEP_MODULE), { "": { "": report } }).exports[""];
    this.#limits = limits;
    this.#sandbox = new Sandbox(instrument(bytes), limits, {
      hasStarted: ({ [TABLE]: table }) => table.set(table.length - 1, step),
      calls: () => this.#start(),
    });
  }

  /** The lines that a call runs, what each costs, and what the sandbox itself does; null if the guest cannot tell. */
  profile(functions, call) {
    try {
      if (functions !== this.#functions) {
        this.#steps = new Steps(this.#sandbox.listSteps(functions), functions.image);
        this.#functions = functions;
      }
      const { failure, fuel } = this.#sandbox.call(functions, call);
      if (this.#recorder === null) return null;
      this.#recorder.finish(this.#limits.fuel - fuel, LIMITS.includes(failure?.kind));
      const { lines, outside } = this.#recorder;
      return { fuel, outside, lines };
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      return null;
    } finally {
      this.#recorder = null;
    }
  }

  /** Begins to record. A message that needs more memory than it may have runs twice, and the second time counts. */
  #start() {
    this.#recorder = new Recorder(this.#steps, this.#limits.fuel);
  }
}
