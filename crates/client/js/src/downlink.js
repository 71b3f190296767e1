// Downlinks, as applications publish them.

import { encodeBase64 } from "./base64.js";

const PORT_MAX = 255;
const SCHEDULES = ["replace", "first", "last"];

/** Returns the message as JSON; throws when an argument is not valid. */
export function downlinkJson(payload, port, confirmed, schedule) {
  if (!Number.isInteger(port) || port < 0 || port > PORT_MAX) {
    throw new RangeError(`port \`${String(port)}\` not valid: must be an integer from 0 to ${PORT_MAX}`);
  }
  if (typeof confirmed !== "boolean") {
    throw new TypeError("`confirmed` not valid: must be true or false");
  }
  if (!SCHEDULES.includes(schedule)) {
    throw new TypeError(`schedule \`${String(schedule)}\` not valid: must be one of ${SCHEDULES.join(", ")}`);
  }
  return JSON.stringify({ port, confirmed, schedule, ...content(payload) });
}

function content(payload) {
  const bytes = payloadBytes(payload);
  if (bytes === undefined) {
    return { payload_fields: payload };
  }
  if (bytes.length === 0) {
    throw new TypeError("the payload is empty: give at least one byte, or an object of fields");
  }
  return { payload_raw: encodeBase64(bytes) };
}

/** The bytes of a payload; undefined if it is an object of fields. */
function payloadBytes(payload) {
  if (payload instanceof Uint8Array) {
    return payload;
  }
  if (Array.isArray(payload)) {
    return bytesOfNumbers(payload);
  }
  if (typeof payload === "string") {
    return bytesOfHex(payload);
  }
  const prototype = typeof payload === "object" && payload !== null ? Object.getPrototypeOf(payload) : undefined;
  if (prototype === Object.prototype || prototype === null) {
    return undefined;
  }
  throw new TypeError(
    "payload not valid: must be a Uint8Array, an array of numbers, a string in hexadecimal, or an object of fields",
  );
}

function bytesOfNumbers(numbers) {
  const wrong = numbers.findIndex((number) => !Number.isInteger(number) || number < 0 || number > 255);
  if (wrong >= 0) {
    throw new RangeError(`payload not valid: element ${wrong} must be an integer from 0 to 255`);
  }
  return Uint8Array.from(numbers);
}

function bytesOfHex(text) {
  const digits = text.replace(/\s/g, "");
  if (digits.length % 2 !== 0 || /[^0-9a-f]/i.test(digits)) {
    throw new TypeError(`payload \`${text}\` not valid: must be in hexadecimal, two digits for each byte, such as \`01 ff\``);
  }
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
