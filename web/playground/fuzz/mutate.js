// Changes payloads at random, by the rules of `workbench/src/fuzz/mutate.rs`. Payloads are lists of bytes.

/** Bytes at which codecs change their mind: signs, maxima, and the ends of ASCII. */
const BYTES = [0x00, 0x01, 0x02, 0x10, 0x20, 0x40, 0x7f, 0x80, 0xfe, 0xff];
/** Numbers of more bytes for which the same holds. */
const NUMBERS = [0x7fff, 0x8000, 0xffff, 0x0100, 0x7fffffff, 0x80000000, 0xffffffff, 0x7f800000];
/** Up to how many changes are made at once, as a power of two. */
const CHANGES_POWER = 4;
/** Length of random payloads, most of the time: longer ones are rare in the field. */
const SHORT = 24;

/** A random payload of at most `lengthMax` bytes. */
export function randomPayload(random, lengthMax) {
  const most = random.onceIn(8) ? lengthMax : Math.min(lengthMax, SHORT);
  return random.bytes(random.below(most + 1));
}

/** `payload` with a few changes, of at most `lengthMax` bytes; some take a part of `other`. */
export function mutate(random, payload, other, lengthMax) {
  const mutated = [...payload];
  for (let left = 1 << random.below(CHANGES_POWER); left > 0; left -= 1) change(random, mutated, other);
  return mutated.slice(0, lengthMax);
}

function change(random, payload, other) {
  const at = random.below(payload.length);
  switch (random.below(12)) {
    case 0:
    case 1:
      return set(payload, at, (byte) => byte ^ (1 << random.below(8)));
    case 2:
    case 3:
      return set(payload, at, () => random.pick(BYTES));
    case 4:
      return set(payload, at, () => random.byte());
    case 5:
      return set(payload, at, (byte) => byte + 1 - 2 * (random.byte() & 1));
    case 6:
      return payload.splice(random.below(payload.length + 1));
    case 7:
      return payload.push(...random.bytes(1 + random.below(8)));
    case 8:
      return remove(random, payload);
    case 9:
      return number(random, payload);
    case 10:
      return swap(random, payload);
    default:
      return splice(random, payload, other);
  }
}

function set(payload, at, changed) {
  if (at < payload.length) payload[at] = changed(payload[at]) & 0xff;
}

function remove(random, payload) {
  const from = random.below(payload.length);
  payload.splice(from, random.below(Math.min(payload.length - from, 8) + 1));
}

/** Overwrites bytes with a number of two or four, or inserts them. */
function number(random, payload) {
  const chosen = random.pick(NUMBERS);
  const bytes = [chosen >>> 24, (chosen >>> 16) & 0xff, (chosen >>> 8) & 0xff, chosen & 0xff].slice(chosen <= 0xffff ? 2 : 0);
  if (random.onceIn(2)) bytes.reverse();
  const at = random.below(payload.length + 1);
  const end = random.onceIn(2) ? at : Math.min(at + bytes.length, payload.length);
  payload.splice(at, end - at, ...bytes);
}

function swap(random, payload) {
  const [one, other] = [random.below(payload.length), random.below(payload.length)];
  if (one < payload.length) [payload[one], payload[other]] = [payload[other], payload[one]];
}

/** Continues with the end of another payload, from the same place or any. */
function splice(random, payload, other) {
  const at = random.below(payload.length + 1);
  const from = random.onceIn(2) ? Math.min(at, other.length) : random.below(other.length + 1);
  payload.splice(at, payload.length, ...other.slice(from));
}
