// The binary format of WebAssembly modules, as far as the guest is changed here: sections, and numbers in LEB128.

const HEADER_BYTES = 8;

/** The sections of a module: the id of each, where it starts, and where its content starts and ends. */
export function* sections(bytes) {
  for (let start = HEADER_BYTES; start < bytes.length; ) {
    const [length, content] = readLeb128(bytes, start + 1);
    yield { id: bytes[start], start, content, end: content + length };
    start = content + length;
  }
}

/** The bytes of a section. */
export function section(id, content) {
  return join([Uint8Array.of(id, ...leb128(content.length)), content]);
}

/** The number at `at`, and where it ends. */
export function readLeb128(bytes, at) {
  let number = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    number |= (byte & 0x7f) << shift;
    if ((byte & 0x80) === 0) return [number >>> 0, at];
  }
}

export function leb128(number) {
  const bytes = [];
  for (; number > 0x7f; number >>>= 7) bytes.push((number & 0x7f) | 0x80);
  return [...bytes, number];
}

/** All bytes of `parts`, one after the other. */
export function join(parts) {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
