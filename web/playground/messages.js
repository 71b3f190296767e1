// The messages in the field of payloads: one on each line, or one message of a network on several lines.

import { readNetworkMessage } from "./network_message.js";
import { bytesOfBase64, bytesOfHex, isOddHex } from "./payload.js";

/** More lines than these are not read. */
export const MESSAGES_MAX = 5000;
const ODD_HEX = "hexadecimal has two digits for each byte, and one is missing or too many; if it is Base64, choose that in Written in";

/**
 * Reads messages: each has `payload`, `port` and `timeMs`, or `problem`, and the `line` where it begins. `notation` is
 * "hex", "base64", or empty to tell them apart; `isTakenForBase64` says that a payload was found to be that.
 */
export function readMessages(text, { port, timeMs, notation }) {
  const whole = readWhole(text, port, timeMs);
  if (whole !== null) return [whole];
  const messages = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "" || messages.length === MESSAGES_MAX) continue;
    messages.push({ line: index + 1, ...read(line.trim(), { port, timeMs, notation }) });
  }
  return messages;
}

/** A message of a network that goes over several lines; null if the lines are messages of their own. */
function readWhole(text, port, timeMs) {
  if (!text.trim().includes("\n") || !/^\s*(\S+\/\S*\s+)?[{[]/.test(text)) return null;
  try {
    return { line: 1, ...withDefaults(readNetworkMessage(text), port, timeMs) };
  } catch {
    return null;
  }
}

function read(line, { port, timeMs, notation }) {
  if (/[{[]/.test(line)) {
    try {
      return withDefaults(readNetworkMessage(line), port, timeMs);
    } catch (error) {
      return { problem: error.message };
    }
  }
  const [, ownPort, rest] = /^(\d{1,3}):(?![0-9a-f]{2}:)\s*(.*)$/i.exec(line) ?? [null, null, line];
  if (ownPort !== null && Number(ownPort) > 255) return { problem: `${ownPort} is no port: they are from 0 to 255` };
  if (notation === "" && isOddHex(rest)) return { problem: ODD_HEX };
  const hex = notation === "base64" ? null : bytesOfHex(rest);
  const payload = notation === "hex" ? hex : (hex ?? bytesOfBase64(rest));
  if (payload === null) return { problem: problemOf(notation) };
  return { payload, port: ownPort === null ? port : Number(ownPort), timeMs, isTakenForBase64: notation === "" && hex === null };
}

function problemOf(notation) {
  if (notation === "hex") return "hexadecimal has an even number of digits from 0 to 9 and from a to f, as in 095c";
  if (notation === "base64") return "Base64 has letters, digits, +, / and = at its end, as in CVw=";
  return "it is neither hexadecimal, as in 095c, nor Base64, as in CVw=";
}

/** A network leaves port 0 out; the port of the page holds only for payloads alone. */
function withDefaults(uplink, port, timeMs) {
  return { payload: uplink.payload, port: uplink.port, timeMs: timeMs ?? uplink.timeMs };
}
