// The steps of loaded functions: where each is in the memory of the guest, and in its source. Mirrors
// `runtime/src/profile/steps.rs`.

import { Malformed, Reader } from "../sandbox/wire.js";

/** Where a step goes on, if not at the next one: at the first of its function, or in the caller. */
export const [INSIDE, FIRST, CALLER] = [0, 1, 2];

const [END, FUNCTION, STEP, BRANCH] = [0, 1, 2, 3];
/** No name of a function is longer than a source may be. */
const NAME_BYTES_MAX = 1 << 24;

export class Steps {
  /** For each step: its line, the place of its function, where it goes on, and whether it is the first of its function. */
  lines = [];
  functions = [];
  exits = [];
  isFirst = [];
  #byAddress = new Map();

  /** Reads the guest's list, with the memory that it is about; throws `Malformed`. */
  constructor(list, memory) {
    const reader = new Reader(list);
    let [functions, address] = [0, null];
    for (let kind = reader.byte(); kind !== END; kind = reader.byte()) {
      if (kind === FUNCTION) {
        reader.byte();
        address = reader.number();
        reader.sized(NAME_BYTES_MAX);
        functions += 1;
      } else if ((kind === STEP || kind === BRANCH) && address !== null) {
        this.#add(functions - 1, address, reader, memory);
      } else {
        throw new Malformed("its list of steps is not one");
      }
    }
  }

  /** The step at an address of the guest's memory; undefined if it is of no function of the source. */
  find(address) {
    return this.#byAddress.get(address);
  }

  #add(place, address, reader, memory) {
    const [offset, line] = [reader.number(), reader.number()];
    // The column, which is not shown.
    reader.number();
    this.isFirst.push(this.functions.at(-1) !== place);
    this.#byAddress.set(address + offset, this.lines.length);
    this.lines.push(line);
    this.functions.push(place);
    this.exits.push(exit(memory, address + offset, offset));
  }
}

/** Where the step at `at` goes on. The numbers are those of the guest's QuickJS. */
function exit(memory, at, offset) {
  const code = memory[at];
  // return, return_undef, return_async
  if (code === 40 || code === 41 || code === 47) return CALLER;
  const distance = distanceOf(new DataView(memory.buffer, memory.byteOffset + at + 1), code);
  // Counted from behind the number of the instruction.
  return offset + 1 + distance === 0 ? FIRST : INSIDE;
}

/** The distance that a step jumps; NaN if it does not. */
function distanceOf(view, code) {
  // if_false, if_true, goto
  if (code >= 104 && code <= 106) return view.getInt32(0, true);
  // if_false8, if_true8, goto8
  if (code >= 240 && code <= 242) return view.getInt8(0);
  // goto16
  return code === 243 ? view.getInt16(0, true) : NaN;
}
