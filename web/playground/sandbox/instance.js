// One instance of the guest: writes a request into its memory, runs it within its fuel, and copies the reply out. The
// host's side of `runtime/src/sandbox/instance.rs`.

import { Failure, broken } from "./failure.js";
import { readTrapReport, replyBytesMax } from "./reply.js";
import { SLOTS } from "./wire.js";

/** Fuel for the request buffer, which runs no script. */
const ALLOC_FUEL = 1_000_000n;
/** Fuel for the trap report. */
const TRAP_REPORT_FUEL = 500_000n;
/** A leaf function does not write back its stack pointer, so almost full counts as full. */
const NEARLY_FULL_BYTES = 4096;
const WASM_PAGE_BYTES = 65_536;

const OUT_OF_MEMORY = "needs more memory than it may have";

/** The server's words for what V8 says of a trap. */
const TRAPS = [
  [/unreachable/, "wasm trap: wasm `unreachable` instruction executed"],
  [/memory access out of bounds/, "wasm trap: out of bounds memory access"],
  [/divide by zero|remainder by zero/, "wasm trap: integer divide by zero"],
  [/divide result unrepresentable/, "wasm trap: integer overflow"],
  [/float unrepresentable/, "wasm trap: invalid conversion to integer"],
  [/table index is out of bounds/, "wasm trap: undefined element: out of bounds table access"],
  [/null function|dereferencing a null/, "wasm trap: uninitialized element"],
  [/signature mismatch/, "wasm trap: indirect call type mismatch"],
];

class OutsideOfMemory extends Error {
  constructor() {
    super("it points outside of its own memory");
  }
}

export class Instance {
  #guest;
  #exports;
  #limits;

  /** An instance whose memory may grow to the limit, or further if it `hasRoom`. */
  constructor(guest, limits, hasRoom) {
    this.#guest = guest;
    this.#limits = limits;
    this.#exports = guest.start(limits, hasRoom);
    this.hasRoom = hasRoom;
    this.hasTrapped = false;
  }

  get memory() {
    return new Uint8Array(this.#exports.memory.buffer);
  }

  /** True if the script asked for more than the limit, as far as a memory with room can tell. */
  get isBeyondLimit() {
    return this.hasRoom && this.memory.length > this.#limits.memory_bytes_max;
  }

  /** Makes the memory equal to `image`; false if it has become longer. */
  restore(image) {
    const missing = (image.length - this.memory.length) / WASM_PAGE_BYTES;
    if (missing < 0 || this.hasTrapped) return false;
    this.#exports.memory.grow(missing);
    this.memory.set(image);
    return true;
  }

  /** Runs `load`, `call` or `list_steps`: the reply or a failure, the fuel that was used, and the logs of what trapped. */
  run(operation, request, fuel, slot) {
    let [reply, failure, logs] = [null, null, []];
    try {
      const address = this.#writeRequest(request);
      this.#exports.fuel.value = BigInt(fuel);
      const bytesMax = operation === "list_steps" ? this.#limits.memory_bytes_max : replyBytesMax(this.#limits);
      reply = this.#read(this.#exports[operation](address, request.length), bytesMax);
    } catch (error) {
      failure = this.#failure(error, slot);
    }
    const left = Math.min(Math.max(Number(this.#exports.fuel.value), 0), fuel);
    if (failure !== null) {
      this.hasTrapped = true;
      logs = this.#trapReport(failure);
    }
    return { reply, failure, logs, fuel: fuel - left };
  }

  #writeRequest(request) {
    this.#exports.stack_pointer.value = this.#guest.stackPointer;
    this.#exports.fuel.value = ALLOC_FUEL;
    const address = this.#exports.alloc(request.length) >>> 0;
    if (address + request.length > this.memory.length) throw new OutsideOfMemory();
    this.memory.set(request, address);
    return address;
  }

  /** Copies a reply; its address is in the upper half of the number, its length in the lower. */
  #read(reply, bytesMax) {
    const bits = BigInt.asUintN(64, reply);
    const [address, length] = [Number(bits >> 32n), Number(bits & 0xffff_ffffn)];
    const isWithin = length <= bytesMax && address + length <= this.memory.length;
    if (!isWithin) throw new OutsideOfMemory();
    return this.memory.slice(address, address + length);
  }

  /** Adds the position to `failure`, and returns the log, as far as the guest can still tell them. */
  #trapReport(failure) {
    try {
      this.#exports.fuel.value = TRAP_REPORT_FUEL;
      const report = readTrapReport(this.#read(this.#exports.trap_report(), replyBytesMax(this.#limits)), this.#limits);
      [failure.line, failure.column] = [report.line, report.column];
      return report.logs;
    } catch {
      return [];
    }
  }

  /** Explains a trap to the author of the function that was running. */
  #failure(error, asked) {
    const slot = SLOTS[this.memory[this.#guest.runningSlot]] ?? asked;
    if (error instanceof OutsideOfMemory) return broken(slot, error.message);
    const isStackFull = error instanceof RangeError || this.#isStackUsedUp();
    if (isStackFull) return new Failure(slot, "stack", "called itself too deeply");
    if (this.#exports.fuel.value < 0n) return new Failure(slot, "fuel", "used up its fuel");
    if (!this.hasRoom) return new Failure(slot, "memory", OUT_OF_MEMORY);
    return broken(slot, TRAPS.find(([pattern]) => pattern.test(error.message))?.[1] ?? error.message);
  }

  #isStackUsedUp() {
    const pointer = this.#exports.stack_pointer.value >>> 0;
    return pointer < NEARLY_FULL_BYTES || pointer > this.#guest.stackPointer;
  }
}

/** Without memory for an error object, QuickJS may throw anything: that is out of memory, too. */
export function asOutOfMemory(failure) {
  if (failure?.kind === "thrown") Object.assign(failure, { kind: "memory", message: OUT_OF_MEMORY });
}
