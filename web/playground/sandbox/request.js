// What the guest is asked: to evaluate sources, and to run a message through their functions.

import { Failure } from "./failure.js";
import { shapeOf } from "./shape.js";
import { ANY_SLOT, DIALECTS, ENTRY_POINTS, FUNCTIONS, SLOTS, Writer } from "./wire.js";

/** The limits that the guest itself keeps, in the order of `runtime/src/contract/guest_limits.rs`. */
const GUEST_LIMITS = [
  "heap_bytes_max",
  "fields_bytes_max",
  "fields_depth_max",
  "fields_keys_max",
  "payload_bytes_max",
  "log_entries_max",
  "log_field_bytes_max",
  "log_bytes_max",
  "message_bytes_max",
  "warnings_max",
];
/** Which slots have a function in which dialect; v2 converters and validators go with every decoder. */
const SLOTS_OF = { v2: 0b1111, ts013: 0b1001, chirpstack3: 0b1001 };

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * The sources of an application: `text` alone may define any of the functions, `decoder`, `converter`, `validator` and
 * `encoder` one each. `dialect` is detected where it is absent.
 */
export function textOf(sources, slot) {
  return sources.text ?? sources[slot] ?? "";
}

/** The request that evaluates `sources`; throws a `Failure` if one is too long. */
export function loadRequest(sources, limits) {
  const writer = new Writer();
  for (const name of GUEST_LIMITS) writer.number(limits[name]);
  for (const [slots, slot] of withSlots(sources)) {
    const text = encoder.encode(textOf(sources, slot));
    checkLength(text.length, slot, limits);
    if (isBlank(text)) continue;
    const fits = sources.dialect && (slots === ANY_SLOT || (SLOTS_OF[sources.dialect] & slots) !== 0);
    writer.byte(slots).byte(fits ? DIALECTS.indexOf(sources.dialect) + 1 : 0).text(text);
  }
  return writer.finish();
}

/** Each source with the slots that it fills. One that is both decoder and encoder is evaluated once. */
function withSlots(sources) {
  if (sources.text !== undefined) return [[ANY_SLOT, "decoder"]];
  const all = SLOTS.map((slot, index) => [1 << index, slot]);
  if (textOf(sources, "decoder") === textOf(sources, "encoder")) {
    all.pop();
    all[0][0] |= 1 << SLOTS.indexOf("encoder");
  }
  return all;
}

function checkLength(bytes, slot, limits) {
  if (bytes > limits.source_bytes_max) {
    throw new Failure(slot, "syntax", `it is ${bytes} bytes long, ${limits.source_bytes_max} are allowed`);
  }
}

function isBlank(bytes) {
  return bytes.every((byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d && byte !== 0x0b));
}

/**
 * The request that runs a call; throws a `Failure` of `slot` if it exceeds the limits.
 *
 * A call has `entryPoint`, `port`, `timeMs` since 1970, `seed`, `payload` (bytes, or JSON as UTF-8 for what takes an
 * object), `extra` (a JSON object or an empty text), and for a single function its name as `singleFunction`.
 */
export function callRequest(call, slot, limits) {
  const extra = encoder.encode(call.extra ?? "");
  const problem = jsonProblem(extra, limits) ?? payloadProblem(call, limits);
  if (problem !== null) throw new Failure(slot, "output", problem);
  const writer = new Writer().byte(ENTRY_POINTS.indexOf(call.entryPoint)).byte(call.port);
  writer.long(call.timeMs).long(call.seed).text(call.payload).text(extra);
  if (call.entryPoint === "singleFunction") writer.byte(FUNCTIONS.indexOf(call.singleFunction));
  return writer.finish();
}

function payloadProblem(call, limits) {
  if (takesJson(call)) return jsonProblem(call.payload, limits);
  const [bytes, max] = [call.payload.length, limits.input_bytes_max];
  return bytes > max ? `got ${bytes} bytes; at most ${max} may come in` : null;
}

function takesJson({ entryPoint, singleFunction }) {
  if (entryPoint !== "singleFunction") return entryPoint === "encodeDownlink";
  return singleFunction !== "uplink" && singleFunction !== "downlink-decode";
}

function jsonProblem(json, limits) {
  if (json.length > limits.fields_bytes_max) return `got more than ${limits.fields_bytes_max} bytes of JSON`;
  try {
    decoder.decode(json);
  } catch {
    return "got fields that are no JSON";
  }
  const { depth, keys } = shapeOf(json);
  if (depth > limits.fields_depth_max) return `got fields more than ${limits.fields_depth_max} levels deep`;
  return keys > limits.fields_keys_max ? `got fields with more than ${limits.fields_keys_max} keys` : null;
}
