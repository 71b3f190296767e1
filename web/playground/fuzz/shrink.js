// Makes payloads smaller, by the rules of `workbench/src/fuzz/shrink.rs`: first shorter, then with smaller bytes.

/** Lengths up to which payloads of zeros are tried first: most faults are of messages that are too short. */
const ZEROS_MAX = 32;

/** A payload as small as can be found for which `holds` is still true; it says no when it has been asked too often. */
export function shrink(payload, holds) {
  const zeros = Array.from({ length: Math.min(payload.length, ZEROS_MAX) }, (_, length) => new Array(length).fill(0));
  let smallest = zeros.find(holds) ?? [...payload];
  for (;;) {
    const shorter = lower(shorten(smallest, holds), holds);
    if (String(shorter) === String(smallest)) return smallest;
    smallest = shorter;
  }
}

/** Removes parts, large ones first, from the end to the beginning. */
function shorten(payload, holds) {
  let shortest = payload;
  for (let length = payload.length; length > 0; length = length >> 1) {
    for (let end = shortest.length; end > 0; ) {
      const start = Math.max(0, end - length);
      const shorter = [...shortest.slice(0, start), ...shortest.slice(end)];
      if (holds(shorter)) shortest = shorter;
      end = Math.min(start, shortest.length);
    }
  }
  return shortest;
}

/** Lowers each byte as far as it goes. */
function lower(payload, holds) {
  const lowest = [...payload];
  for (const index of lowest.keys()) {
    for (let lower = lowered(lowest, index, holds); lower !== undefined; lower = lowered(lowest, index, holds)) lowest[index] = lower;
  }
  return lowest;
}

/** A value for the byte at `index` that is lower and still holds. */
function lowered(payload, index, holds) {
  const byte = payload[index];
  const bits = Array.from({ length: 8 }, (_, bit) => 1 << bit);
  const values = [0, ...bits, ...bits.toReversed().map((bit) => byte & ~bit), byte >> 1, Math.max(0, byte - 1)];
  return values.find((value) => value < byte && holds(payload.with(index, value)));
}
