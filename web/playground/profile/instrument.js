// Makes the guest report each step of a script, as `runtime/src/profile/instrument.rs` does: the same code with the same
// charges, and one call more before the place where the interpreter looks at the next step of the bytecode.

import { join, leb128, readLeb128, section, sections } from "../sandbox/module.js";
import { BR_TABLE, I32_LOAD8_U, LOCAL_GET, operators } from "./operators.js";

/** The exported table; its last place is for the function of the host. */
export const TABLE = "steps";

/** The interpreter knows more kinds of steps than this; no other code of the guest looks like this with that many. */
const STEP_KINDS_MIN = 200;
const [TYPES, TABLES, EXPORTS, CODE] = [1, 4, 7, 10];
const GLOBAL = 3;
/** (i64, i32, i32) -> () */
const STEP_TYPE = [0x60, 3, 0x7e, 0x7f, 0x7f, 0];
const STEPS_EXPORT = [TABLE.length, ...new TextEncoder().encode(TABLE), 1, 0];

/** The guest with a call before each step: it gets the fuel that is left, the stack pointer, and the step's address. */
export function instrument(wasm) {
  const all = [...sections(wasm)];
  const [types, tables, exported, code] = [TYPES, TABLES, EXPORTS, CODE].map((id) => all.find((one) => one.id === id));
  const [type] = readLeb128(wasm, types.content);
  const places = tablePlaces(wasm, tables.content);
  const globals = exportedGlobals(wasm, exported.content);
  const changed = new Map([
    [TYPES, () => oneMore(wasm, types, STEP_TYPE)],
    [TABLES, () => Uint8Array.of(1, 0x70, 1, ...leb128(places + 1), ...leb128(places + 1))],
    [EXPORTS, () => oneMore(wasm, exported, STEPS_EXPORT)],
    [CODE, () => withCall(wasm, code, (address) => call(globals, address, places, type))],
  ]);
  const parts = all.map(({ id, start, end }) => (changed.has(id) ? section(id, changed.get(id)()) : wasm.subarray(start, end)));
  return join([wasm.subarray(0, all[0].start), ...parts]);
}

/** The number of places in the one table. */
function tablePlaces(wasm, content) {
  const [count, kind] = [wasm[content], wasm[content + 1]];
  if (count !== 1 || kind !== 0x70) throw new Error("the guest has other tables than this page knows");
  return readLeb128(wasm, content + 3)[0];
}

/** The index of each exported global, by its name. */
function exportedGlobals(wasm, content) {
  let [count, at] = readLeb128(wasm, content);
  const globals = {};
  for (; count > 0; count -= 1) {
    const [length, start] = readLeb128(wasm, at);
    const [index, end] = readLeb128(wasm, start + length + 1);
    if (wasm[start + length] === GLOBAL) globals[new TextDecoder().decode(wasm.subarray(start, start + length))] = index;
    at = end;
  }
  return globals;
}

/** A section with one more entry at its end. */
function oneMore(wasm, { content, end }, entry) {
  const [count, first] = readLeb128(wasm, content);
  return join([leb128(count + 1), wasm.subarray(first, end), entry]);
}

/** The code with `make(address)` where the interpreter reads the next step, whose address is in that local. */
function withCall(wasm, { content, end }, make) {
  let [, at] = readLeb128(wasm, content);
  const found = [];
  while (at < end) {
    const [length, start] = readLeb128(wasm, at);
    const dispatch = dispatchIn(wasm, start, start + length);
    if (dispatch !== null) found.push({ size: at, start, end: start + length, ...dispatch });
    at = start + length;
  }
  if (found.length !== 1) throw new Error("the interpreter of the guest is not recognized");
  const [body] = found;
  const added = make(body.address);
  const size = leb128(body.end - body.start + added.length);
  const parts = [[content, body.size], size, [body.start, body.offset], added, [body.offset, end]];
  return join(parts.map((part, index) => (index % 2 === 0 ? wasm.subarray(...part) : part)));
}

/** Where a function reads a byte and branches to one of very many places by it; null if it does not. */
function dispatchIn(wasm, start, end) {
  let [read, since, last] = [null, 0, null];
  for (const { code, start: offset, immediates } of operators(wasm, start, end)) {
    since += 1;
    if (code === LOCAL_GET) {
      last = { offset, address: readLeb128(wasm, immediates)[0] };
    } else if (code === I32_LOAD8_U && isWithoutOffset(wasm, immediates)) {
      [read, since, last] = [last, 0, null];
    } else if (code === BR_TABLE && since <= 4 && readLeb128(wasm, immediates)[0] >= STEP_KINDS_MIN) {
      // Between the two: the byte is kept, and the number of the first step is subtracted.
      return read;
    } else {
      last = null;
    }
  }
  return null;
}

function isWithoutOffset(wasm, immediates) {
  const [, offset] = readLeb128(wasm, immediates);
  return readLeb128(wasm, offset)[0] === 0;
}

/** Calls the function in the last place of the table. */
function call({ fuel, stack_pointer }, address, place, type) {
  const [GLOBAL_GET, I32_CONST, CALL_INDIRECT] = [0x23, 0x41, 0x11];
  const parts = [[GLOBAL_GET, ...leb128(fuel)], [GLOBAL_GET, ...leb128(stack_pointer)], [LOCAL_GET, ...leb128(address)]];
  parts.push([I32_CONST, ...signedLeb128(place)], [CALL_INDIRECT, ...leb128(type), 0]);
  return parts.flat();
}

/** A number of at most 31 bits as constants have it: with a bit for the sign. */
function signedLeb128(number) {
  const bytes = leb128(number);
  const last = bytes.pop();
  return last < 0x40 ? [...bytes, last] : [...bytes, last | 0x80, 0];
}
