// Which bytes of a payload each field came from: every byte is changed, and the message is run again.
//
// A byte that changes the value of a field, while the fields stay the same, is one that the field came from. A byte that
// makes fields come or go, or the message fail, is one of its structure. A byte is unread if none of its 255 other values
// makes any difference.

/** The values that a byte gets first, as `airlock functions fuzz` gives them, and its own bits, one by one. */
const VALUES = [0x00, 0xff, 0x01, 0x80, 0x55, 0xaa, 0x10, 0x7f];

/** The paths and values of what a JSON text holds, as far as it holds no more; objects and lists that are empty too. */
export function leavesOf(json) {
  const leaves = new Map();
  const walk = (value, path) => {
    const isEmpty = typeof value !== "object" || value === null || Object.keys(value).length === 0;
    if (isEmpty) {
      leaves.set(path, JSON.stringify(value));
    } else if (Array.isArray(value)) {
      value.forEach((one, index) => walk(one, `${path}[${index}]`));
    } else {
      for (const [name, one] of Object.entries(value)) walk(one, path === "" ? name : `${path}.${name}`);
    }
  };
  walk(JSON.parse(json), "");
  return leaves;
}

/** Maps the bytes of one payload. `run` runs a payload, and returns its outcome. */
export class ByteMap {
  #payload;
  #run;
  #before;
  #leaves;
  /** For each byte, the paths of the fields that came from it. */
  #fields;
  #structure = new Set();
  #read = new Set();

  constructor(payload, outcome, run) {
    this.#payload = payload;
    this.#run = run;
    this.#before = essence(outcome);
    this.#leaves = leavesOf(outcome.value.json);
    this.#fields = Array.from(payload, () => new Set());
  }

  /** Changes byte after byte: first a few values of each, then all values of those that nothing read. Yields after each run. */
  *steps() {
    for (const index of this.#payload.keys()) {
      const own = this.#payload[index];
      const bits = Array.from({ length: 8 }, (_, bit) => own ^ (1 << bit));
      for (const value of new Set([...bits, ...VALUES])) if (value !== own) yield this.#try(index, value);
    }
    for (const index of this.#payload.keys()) {
      for (let value = 0; value < 256 && !this.#read.has(index); value += 1) yield this.#try(index, value);
    }
  }

  /** What is known so far: for each byte whether it was read, whether it is structure, and its fields. */
  get bytes() {
    return this.#fields.map((fields, index) => ({
      isRead: this.#read.has(index),
      isStructure: this.#structure.has(index),
      fields: [...fields],
    }));
  }

  #try(index, value) {
    const payload = this.#payload.slice();
    payload[index] = value;
    const outcome = this.#run(payload);
    if (essence(outcome) === this.#before) return;
    this.#read.add(index);
    if (outcome.value?.json === undefined) {
      this.#structure.add(index);
      return;
    }
    this.#compare(index, leavesOf(outcome.value.json));
  }

  #compare(index, leaves) {
    const isSameShape = leaves.size === this.#leaves.size && [...leaves.keys()].every((path) => this.#leaves.has(path));
    if (!isSameShape) {
      this.#structure.add(index);
      return;
    }
    for (const [path, value] of leaves) if (value !== this.#leaves.get(path)) this.#fields[index].add(path);
  }
}

/** All of an outcome that another payload may change. Fuel is none of it: a loop over bytes reads them all. */
function essence({ value, failure, warnings, logs }) {
  return JSON.stringify([value, failure?.text, warnings, logs]);
}
