// What the guest answers. A script has run there, so a reply may be anything, and is read within the limits.

import { Failure } from "./failure.js";
import { shapeOf } from "./shape.js";
import { DIALECTS, FAILURE_KINDS, LOG_LEVELS, Malformed, Reader, SLOTS } from "./wire.js";

/** A truncated field, and the logs with the marker for dropped entries, may exceed their limits by so many bytes. */
const LOG_SLACK_BYTES = 64;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The largest reply within `limits`, in bytes. */
export function replyBytesMax(limits) {
  const texts = (count, bytes) => count * (bytes + 16);
  return (
    texts(2, limits.fields_bytes_max) +
    texts(1, limits.payload_bytes_max) +
    texts(limits.warnings_max + 1, limits.message_bytes_max) +
    texts(limits.log_entries_max, 0) +
    texts(2, limits.log_bytes_max) +
    1024
  );
}

/** The dialect of the function in each slot, null where there is none; throws a `Failure`, or `Malformed`. */
export function readLoad(bytes, limits) {
  const reader = new Reader(bytes);
  const kind = reader.byte();
  if (kind === 1) throw whole(reader, readFailure(reader, limits));
  if (kind !== 0) throw new Malformed("it is no reply to a load");
  return whole(reader, SLOTS.map(() => reader.name([null, ...DIALECTS])));
}

/** The result of a call with its warnings and logs; throws `Malformed`. */
export function readCall(bytes, limits) {
  const reader = new Reader(bytes);
  const result = readResult(reader, limits);
  const warnings = readTexts(reader, limits.warnings_max, limits.message_bytes_max);
  return whole(reader, { ...result, warnings, logs: readLogs(reader, limits) });
}

/** Where a script was when it trapped, and what it had logged; throws `Malformed`. */
export function readTrapReport(bytes, limits) {
  const reader = new Reader(bytes);
  return whole(reader, { line: known(reader.number()), column: known(reader.number()), logs: readLogs(reader, limits) });
}

function readResult(reader, limits) {
  switch (reader.byte()) {
    case 0:
      return { value: readFields(reader, limits), failure: null };
    case 1:
      return { value: readPayload(reader, limits), failure: null };
    case 2:
      return { value: null, failure: readFailure(reader, limits) };
    case 3:
      return { value: { kind: "returned", json: readJson(reader, limits) }, failure: null };
    default:
      throw new Malformed("it has an unknown result");
  }
}

function readFields(reader, limits) {
  const valid = reader.name([false, true]);
  const json = readJson(reader, limits);
  if (json === null || !(json === "null" || json.startsWith("{"))) throw new Malformed("its fields are no object");
  return { kind: "fields", json, normalized: readJson(reader, limits), valid };
}

function readPayload(reader, limits) {
  const port = known(reader.byte());
  return { kind: "bytes", bytes: reader.sized(limits.payload_bytes_max).slice(), port };
}

function readFailure(reader, limits) {
  const [slot, kind] = [reader.name(SLOTS), reader.name(FAILURE_KINDS)];
  const [line, column] = [known(reader.number()), known(reader.number())];
  return new Failure(slot, kind, readText(reader, limits.message_bytes_max), line, column);
}

function readLogs(reader, limits) {
  let left = limits.log_bytes_max + LOG_SLACK_BYTES;
  const logs = [];
  for (let count = readCount(reader, limits.log_entries_max + 1); count > 0; count -= 1) {
    const [slot, level] = [reader.name(SLOTS), reader.name(LOG_LEVELS)];
    const fields = [];
    for (let fieldCount = readCount(reader, left); fieldCount > 0; fieldCount -= 1) {
      const bytes = reader.sized(limits.log_field_bytes_max + LOG_SLACK_BYTES);
      left -= bytes.length;
      fields.push(decode(bytes));
    }
    if (left < 0) throw new Malformed("its logs are too long");
    logs.push({ slot, level, fields });
  }
  return logs;
}

function readTexts(reader, most, bytesMax) {
  return Array.from({ length: readCount(reader, most) }, () => readText(reader, bytesMax));
}

function readCount(reader, most) {
  const count = reader.number();
  if (count > most) throw new Malformed("it has too many texts");
  return count;
}

function readText(reader, bytesMax) {
  return decode(reader.sized(bytesMax));
}

/** JSON within the limits, as text: numbers and surrogates stay as they are written. Null for none. */
function readJson(reader, limits) {
  const bytes = reader.sized(limits.fields_bytes_max);
  if (bytes.length === 0) return null;
  const text = decode(bytes);
  try {
    JSON.parse(text);
  } catch {
    throw new Malformed("its JSON is not valid");
  }
  const { depth, keys } = shapeOf(bytes);
  if (depth > limits.fields_depth_max || keys > limits.fields_keys_max) throw new Malformed("its JSON is too large");
  return text;
}

function decode(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new Malformed("a text is not UTF-8");
  }
}

function known(number) {
  return number === 0 ? null : number;
}

function whole(reader, value) {
  if (!reader.isEmpty) throw new Malformed("it goes on after its end");
  return value;
}
