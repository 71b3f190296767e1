// The binary format between this page and the guest: `runtime/src/contract/wire.rs` describes it. Numbers are little
// endian, and a text is its length and that many bytes.

/** The four functions, in the order in which a message passes them; a source that fills one has the bit of its place. */
export const SLOTS = ["decoder", "converter", "validator", "encoder"];
/** The calling conventions, from 1. */
export const DIALECTS = ["v2", "ts013", "chirpstack3"];
export const ENTRY_POINTS = ["uplink", "encodeDownlink", "decodeDownlink", "singleFunction"];
/** The functions that run alone, by the names of `functions test`. */
export const FUNCTIONS = ["uplink", "convert", "validate", "downlink-encode", "downlink-decode", "uplink-normalize"];
export const FAILURE_KINDS = ["syntax", "thrown", "fuel", "memory", "stack", "time", "output", "broken"];
export const LOG_LEVELS = ["debug", "info", "warn", "error"];
/** In place of slots: the source may define any of the functions. */
export const ANY_SLOT = 0x80;

/** The slot whose source defines a function that runs alone. */
export function slotOf(name) {
  return { convert: "converter", validate: "validator", "downlink-encode": "encoder", "downlink-decode": "encoder" }[name] ?? "decoder";
}

/** Builds a request. */
export class Writer {
  #parts = [];

  byte(value) {
    this.#parts.push(Uint8Array.of(value));
    return this;
  }

  number(value) {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, value, true);
    this.#parts.push(bytes);
    return this;
  }

  /** Appends a number of 64 bits; a negative one by its bit pattern. */
  long(value) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, BigInt.asUintN(64, BigInt(value)), true);
    this.#parts.push(bytes);
    return this;
  }

  text(bytes) {
    this.number(bytes.length);
    this.#parts.push(bytes);
    return this;
  }

  finish() {
    const bytes = new Uint8Array(this.#parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of this.#parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }
}

/** A reply that is not what the guest writes. */
export class Malformed extends Error {}

/** Reads a reply; every method throws `Malformed` once the bytes run out. */
export class Reader {
  #bytes;
  #at = 0;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  get isEmpty() {
    return this.#at === this.#bytes.length;
  }

  byte() {
    return this.bytes(1)[0];
  }

  number() {
    const bytes = this.bytes(4);
    return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  }

  /** One of `names`, by its place. */
  name(names) {
    const name = names[this.byte()];
    if (name === undefined) throw new Malformed("an unknown name");
    return name;
  }

  bytes(length) {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new Malformed("it ends early");
    const bytes = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return bytes;
  }

  /** Bytes with their length before them, of which there may be so many. */
  sized(bytesMax) {
    const length = this.number();
    if (length > bytesMax) throw new Malformed("a text is too long");
    return this.bytes(length);
  }
}
