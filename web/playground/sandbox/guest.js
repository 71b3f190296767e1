// The compiled guest: the server's own `guest.wasm`, which imports nothing.
//
// The server refuses memory beyond a limit, and knows that it did. Here nothing sees a refusal, so a call first runs in a
// memory with room: what never grows beyond the limit has been refused nothing. Else it runs again, with the limit.

const WASM_PAGE_BYTES = 65_536;
/** More than the guest asks for at once: it refuses larger requests itself. */
const REQUEST_BYTES_MAX = 256 << 20;
const MEMORY_SECTION = 5;
const HEADER_BYTES = 8;

export class Guest {
  #bytes;
  #modules = new Map();
  /** The memory before anything ran. */
  initial;
  /** Where the shadow stack starts; it grows downwards, to address 0. */
  stackPointer;
  /** The address of the byte that holds the running slot. */
  runningSlot;

  /** Compiles the guest from its bytes. */
  constructor(bytes, limits) {
    this.#bytes = bytes;
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
    return new WebAssembly.Instance(this.#modules.get(pagesMax)).exports;
  }
}

/** Compiles the module with a maximum for its memory, which it has none of itself. */
function compile(bytes, pagesMax) {
  const { start, content, end } = memorySection(bytes);
  // One memory: its flags, and how many pages it starts with.
  const [count, flags] = [bytes[content], bytes[content + 1]];
  if (count !== 1 || flags !== 0) throw new Error("the guest has another memory than this page knows");
  const memory = [1, 1, ...bytes.subarray(content + 2, end), ...leb128(pagesMax)];
  const parts = [bytes.subarray(0, start), Uint8Array.of(MEMORY_SECTION, ...leb128(memory.length), ...memory), bytes.subarray(end)];
  const limited = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    limited.set(part, at);
    at += part.length;
  }
  return new WebAssembly.Module(limited);
}

function memorySection(bytes) {
  for (let start = HEADER_BYTES; start < bytes.length; ) {
    const [length, content] = readLeb128(bytes, start + 1);
    if (bytes[start] === MEMORY_SECTION) return { start, content, end: content + length };
    start = content + length;
  }
  throw new Error("the guest has no memory");
}

/** The number at `at`, and where it ends. */
function readLeb128(bytes, at) {
  let number = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    number |= (byte & 0x7f) << shift;
    if ((byte & 0x80) === 0) return [number >>> 0, at];
  }
}

function leb128(number) {
  const bytes = [];
  for (; number > 0x7f; number >>>= 7) bytes.push((number & 0x7f) | 0x80);
  return [...bytes, number];
}
