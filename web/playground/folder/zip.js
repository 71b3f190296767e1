// Texts as one file in the format ZIP, uncompressed.

/** Version 2.0 of the format, names in UTF-8, and the first date that it has: the time of a file says nothing here. */
const VERSION = 20;
const NAMES_IN_UTF_8 = 1 << 11;
const DATE = (1 << 5) | 1;

const SUMS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum;
});

/** The bytes of an archive with texts, each with its path. */
export function zipped(texts) {
  const encoder = new TextEncoder();
  const [parts, directory] = [[], []];
  let offset = 0;
  for (const [path, text] of texts) {
    const [name, bytes] = [encoder.encode(path), encoder.encode(text)];
    const about = fields([16, VERSION], [16, NAMES_IN_UTF_8], [16, 0], [16, 0], [16, DATE], [32, sumOf(bytes)], [32, bytes.length], [32, bytes.length], [16, name.length], [16, 0]);
    const local = [fields([32, 0x04034b50]), about, name, bytes];
    directory.push(fields([32, 0x02014b50], [16, VERSION]), about, fields([16, 0], [16, 0], [16, 0], [32, 0], [32, offset]), name);
    parts.push(...local);
    offset += lengthOf(local);
  }
  const count = texts.length;
  const end = fields([32, 0x06054b50], [16, 0], [16, 0], [16, count], [16, count], [32, lengthOf(directory)], [32, offset], [16, 0]);
  return joined([...parts, ...directory, end]);
}

/** Numbers of 16 or 32 bits, little end first. */
function fields(...numbers) {
  const bytes = numbers.flatMap(([bits, number]) => Array.from({ length: bits / 8 }, (_, at) => (number >>> (8 * at)) & 255));
  return Uint8Array.from(bytes);
}

function sumOf(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = SUMS[(sum ^ byte) & 255] ^ (sum >>> 8);
  return ~sum >>> 0;
}

function lengthOf(parts) {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

function joined(parts) {
  const all = new Uint8Array(lengthOf(parts));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
