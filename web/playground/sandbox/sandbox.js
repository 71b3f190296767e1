// The server's sandbox, in this engine: evaluates sources once, keeps the memory that this left, and puts it back before
// each message, so that every message starts from exactly the same bytes. What a message costs in fuel is what it costs
// on the server, to the unit.
//
// It runs in browsers and in Node.js, and needs no more than the bytes of `guest.wasm` and the limits.

import { Failure, broken, locateImport } from "./failure.js";
import { Guest } from "./guest.js";
import { Instance, asOutOfMemory } from "./instance.js";
import { readCall, readLoad } from "./reply.js";
import { callRequest, loadRequest, textOf } from "./request.js";
import { Malformed, SLOTS, slotOf } from "./wire.js";

export { Failure };

/** The granularity in which the server counts memory that changed. */
const PAGE_BYTES = 4096;
const WORD_BYTES = 4;

/** Nobody who looks on: `hasStarted` gets the exports of each instance, and `calls` is before each message. */
const NOBODY = { hasStarted() {}, calls() {} };

/** The functions of an application, evaluated. */
export class Functions {
  constructor(image, dialects, loadFuel, keptBytes) {
    Object.assign(this, { image, dialects, loadFuel, keptBytes });
  }

  /** The dialect of the function in `slot`; null if there is none. */
  dialect(slot) {
    return this.dialects[SLOTS.indexOf(slot)];
  }

  get firstSlot() {
    return SLOTS.find((slot) => this.dialect(slot) !== null) ?? "decoder";
  }
}

export class Sandbox {
  #guest;
  #limits;
  #observer;
  /** The instance of the last call, to be used again. */
  #instance = null;

  /** A sandbox of the guest in `bytes`, within the limits of `runtime/src/limits.rs`. */
  constructor(bytes, limits, observer = NOBODY) {
    this.#guest = new Guest(bytes, limits, (exports) => observer.hasStarted(exports));
    [this.#limits, this.#observer] = [limits, observer];
  }

  /** Evaluates sources; throws a `Failure`. */
  load(sources) {
    const request = loadRequest(sources, this.#limits);
    let [instance, run] = this.#evaluate(request, true);
    if (instance.isBeyondLimit) [instance, run] = this.#evaluate(request, false);
    if (run.failure !== null) throw run.failure;
    const dialects = readDialects(run.reply, sources, this.#limits);
    const image = this.#image(instance);
    const functions = new Functions(image, dialects, run.fuel, this.#changedBytes(image, this.#guest.initial));
    this.#checkKept(functions);
    return functions;
  }

  /**
   * Runs a call (see `callRequest`): `value` or `failure`, `warnings`, `logs`, `fuel`, and `milliseconds`. With
   * `measured`, also the memory that the message changed and the length of all, in bytes.
   */
  call(functions, call, measured = false) {
    const start = performance.now();
    const slot = firstSlot(functions, call);
    const outcome = this.#outcome(functions, call, slot);
    if (outcome.failure !== null) outcome.failure.functionName = functionName(call);
    outcome.milliseconds = performance.now() - start;
    if (measured) outcome.memory = this.#measure(functions);
    return outcome;
  }

  /** The steps of all functions, as the guest lists them (`runtime/guest/src/steps.rs`); throws a `Failure`. */
  listSteps(functions) {
    const instance = this.#ready(functions, true);
    const run = instance.run("list_steps", new Uint8Array(), this.#limits.load_fuel, functions.firstSlot);
    if (run.failure !== null) throw run.failure;
    return run.reply;
  }

  #evaluate(request, hasRoom) {
    const instance = new Instance(this.#guest, this.#limits, hasRoom);
    return [instance, instance.run("load", request, this.#limits.load_fuel, "decoder")];
  }

  /** The memory that messages start from. What earlier calls left on the stack is not part of it. */
  #image(instance) {
    const image = instance.memory.slice();
    const stackEnd = Math.floor(this.#guest.stackPointer / PAGE_BYTES) * PAGE_BYTES;
    image.set(this.#guest.initial.subarray(0, stackEnd));
    return image;
  }

  #checkKept(functions) {
    const [kept, max] = [functions.keptBytes, this.#limits.kept_bytes_max];
    if (kept <= max) return;
    const text = `leaves ${kept} bytes behind when it is evaluated, ${max} are allowed`;
    throw new Failure(functions.firstSlot, "memory", text);
  }

  #outcome(functions, call, slot) {
    let request;
    try {
      request = callRequest(call, slot, this.#limits);
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      return { value: null, failure, warnings: [], logs: [], fuel: 0 };
    }
    const outcome = this.#run(functions, request, slot, true);
    if (!this.#instance.isBeyondLimit) return outcome;
    const limited = this.#run(functions, request, slot, false);
    asOutOfMemory(limited.failure);
    return limited;
  }

  #run(functions, request, slot, hasRoom) {
    const instance = this.#ready(functions, hasRoom);
    this.#observer.calls();
    const { reply, failure, logs, fuel } = instance.run("call", request, this.#limits.fuel, slot);
    if (failure !== null) return { value: null, failure, warnings: [], logs, fuel };
    try {
      return { ...readCall(reply, this.#limits), fuel };
    } catch (error) {
      return { value: null, failure: asMalformed(error, slot), warnings: [], logs: [], fuel };
    }
  }

  /** An instance with the memory that messages start from. */
  #ready({ image }, hasRoom) {
    const isReady = this.#instance?.hasRoom === hasRoom && this.#instance.restore(image);
    if (!isReady) {
      this.#instance = new Instance(this.#guest, this.#limits, hasRoom);
      this.#instance.restore(image);
    }
    return this.#instance;
  }

  #measure({ image }) {
    if (this.#instance === null) return null;
    const memory = this.#instance.memory;
    return { changedBytes: this.#changedBytes(memory, image), bytes: memory.length };
  }

  /** The bytes of the pages above the stack in which `memory` differs from `before`, which has zeros after its end. */
  #changedBytes(memory, before) {
    const [now, then] = [words(memory), words(before)];
    const pageWords = PAGE_BYTES / WORD_BYTES;
    let pages = 0;
    for (let at = Math.floor(this.#guest.stackPointer / PAGE_BYTES) * pageWords; at < now.length; at += pageWords) {
      for (let index = at; index < at + pageWords; index += 1) {
        if (now[index] !== (then[index] ?? 0)) {
          pages += 1;
          break;
        }
      }
    }
    return pages * PAGE_BYTES;
  }
}

/** Memory as numbers, to be compared faster. */
function words(bytes) {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / WORD_BYTES);
}

/** The slot that a failure before any function is reported for. */
function firstSlot(functions, { entryPoint, singleFunction }) {
  if (entryPoint === "singleFunction") return slotOf(singleFunction);
  return entryPoint === "uplink" ? functions.firstSlot : "encoder";
}

/** The function of its own name that a failure is reported for, if it is one of several in its slot. */
function functionName({ entryPoint, singleFunction }) {
  if (entryPoint === "decodeDownlink" || singleFunction === "downlink-decode") return "decodeDownlink";
  return singleFunction === "uplink-normalize" ? "normalizeUplink" : null;
}

function readDialects(reply, sources, limits) {
  try {
    return readLoad(reply, limits);
  } catch (error) {
    const failure = error instanceof Failure ? error : asMalformed(error, "decoder");
    locateImport(failure, textOf(sources, failure.slot));
    throw failure;
  }
}

function asMalformed(error, slot) {
  if (!(error instanceof Malformed)) throw error;
  return broken(slot, "its reply was malformed");
}
