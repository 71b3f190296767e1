// Reads the instructions of WebAssembly functions, as far as their kinds and lengths: those that the guest may use
// (`runtime/src/load/features.rs`).

import { readLeb128 } from "../sandbox/module.js";

export const LOCAL_GET = 0x20;
export const I32_LOAD8_U = 0x2d;
export const BR_TABLE = 0x0e;

const VECTOR = 0xfd;
const SATURATING = 0xfc;

/** The instructions of a function body in `bytes`: the code of each, where it starts, and where its immediates do. */
export function* operators(bytes, start, end) {
  let at = behindLocals(bytes, start);
  while (at < end) {
    const code = bytes[at];
    yield { code, start: at, immediates: at + 1 };
    at = behind(bytes, code, at + 1);
  }
}

function behindLocals(bytes, start) {
  let [groups, at] = readLeb128(bytes, start);
  for (; groups > 0; groups -= 1) at = skip(bytes, at, 1) + 1;
  return at;
}

/** Where the next instruction starts. */
function behind(bytes, code, at) {
  if (code >= 0x28 && code <= 0x3e) return skip(bytes, at, 2);
  if (code >= 0x45 && code <= 0xc4) return at;
  switch (code) {
    case 0x00: case 0x01: case 0x05: case 0x0b: case 0x0f: case 0x1a: case 0x1b:
      return at;
    // Blocks, branches, calls, variables, the size of the memory, and numbers.
    case 0x02: case 0x03: case 0x04: case 0x0c: case 0x0d: case 0x10: case 0x20: case 0x21: case 0x22: case 0x23: case 0x24:
    case 0x3f: case 0x40: case 0x41: case 0x42:
      return skip(bytes, at, 1);
    case 0x11:
      return skip(bytes, at, 2);
    case 0x43:
      return at + 4;
    case 0x44:
      return at + 8;
    case BR_TABLE: {
      const [targets, first] = readLeb128(bytes, at);
      return skip(bytes, first, targets + 1);
    }
    case SATURATING:
    case VECTOR:
      return behindPrefixed(bytes, code, at);
    default:
      throw new Error(`the guest has an instruction that this page does not know: ${code}`);
  }
}

function behindPrefixed(bytes, prefix, start) {
  const [code, at] = readLeb128(bytes, start);
  if (prefix === SATURATING) {
    if (code > 7) throw new Error(`the guest has an instruction that this page does not know: ${prefix} ${code}`);
    return at;
  }
  if (code <= 11 || code === 92 || code === 93) return skip(bytes, at, 2);
  if (code === 12 || code === 13) return at + 16;
  if (code >= 21 && code <= 34) return at + 1;
  if (code >= 84 && code <= 91) return skip(bytes, at, 2) + 1;
  return at;
}

/** Where so many numbers end. */
function skip(bytes, at, count) {
  for (; count > 0; count -= 1) while ((bytes[at++] & 0x80) !== 0);
  return at;
}
