// The depth and the number of keys of a JSON text, counted as the server counts them (`runtime/src/contract/input.rs`).

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [BRACE, BRACKET, END_BRACE, END_BRACKET] = [0x7b, 0x5b, 0x7d, 0x5d];

/** Measures JSON, as UTF-8. What it says of other bytes has no meaning. */
export function shapeOf(json) {
  let [depth, deepest, keys, inString, escaped] = [0, 0, 0, false, false];
  for (const byte of json) {
    if (escaped) escaped = false;
    else if (byte === BACKSLASH) escaped = inString;
    else if (byte === QUOTE) inString = !inString;
    else if (inString) continue;
    else if (byte === BRACE || byte === BRACKET) deepest = Math.max(deepest, (depth += 1));
    else if (byte === END_BRACE || byte === END_BRACKET) depth = Math.max(0, depth - 1);
    else if (byte === COLON) keys += 1;
  }
  return { depth: deepest, keys };
}
