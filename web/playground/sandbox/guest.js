// The compiled guest: the server's own `guest.wasm`, which imports nothing.
//
// The server refuses memory beyond a limit, and knows that it did. Here nothing sees a refusal, so a call first runs in a
// memory with room: what never grows beyond the limit has been refused nothing. Else it runs again, with the limit.

import { join, leb128, section, sections } from "./module.js";

const WASM_PAGE_BYTES = 65_536;
/** More than the guest asks for at once: it refuses larger requests itself. */
const REQUEST_BYTES_MAX = 256 << 20;
const MEMORY_SECTION = 5;

export class Guest {
  #bytes;
  #modules = new Map();
  #hasStarted;
  /** The memory before anything ran. */
  initial;
  /** Where the shadow stack starts; it grows downwards, to address 0. */
  stackPointer;
  /** The address of the byte that holds the running slot. */
  runningSlot;

  /** Compiles the guest from its bytes; `hasStarted` gets the exports of each instance. */
  constructor(bytes, limits, hasStarted) {
    [this.#bytes, this.#hasStarted] = [bytes, hasStarted];
    const { memory, stack_pointer, running_slot } = this.start(limits, true);
    this.initial = new Uint8Array(memory.buffer).slice();
    this.stackPointer = stack_pointer.value;
    this.runningSlot = running_slot.value;
  }

  /** Starts an instance whose memory may grow to the limit, or further. */
  start(limits, hasRoom) {
    const bytesMax = limits.memory_bytes_max + (hasRoom ? REQUEST_BYTES_MAX + WASM_PAGE_BYTES : 0);
    const pagesMax = Math.floor(bytesMax / WASM_PAGE_BYTES);
    if (!this.#modules.has(pagesMax)) this.#modules.set(pagesMax, compile(this.#bytes, pagesMax));
    const { exports } = new WebAssembly.Instance(this.#modules.get(pagesMax));
    this.#hasStarted(exports);
    return exports;
  }
}

/** Compiles the module with a maximum for its memory, which it has none of itself. */
function compile(bytes, pagesMax) {
  const { start, content, end } = memorySection(bytes);
  // One memory: its flags, and how many pages it starts with.
  const [count, flags] = [bytes[content], bytes[content + 1]];
  if (count !== 1 || flags !== 0) throw new Error("the guest has another memory than this page knows");
  const memory = Uint8Array.of(1, 1, ...bytes.subarray(content + 2, end), ...leb128(pagesMax));
  return new WebAssembly.Module(join([bytes.subarray(0, start), section(MEMORY_SECTION, memory), bytes.subarray(end)]));
}

function memorySection(bytes) {
  for (const found of sections(bytes)) if (found.id === MEMORY_SECTION) return found;
  throw new Error("the guest has no memory");
}
