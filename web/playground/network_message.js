// An uplink as a network reports it, in JSON: payload, port and time are found by the names that each network uses, as
// `airlock functions run --message` finds them. The tests of both read the same messages
// (`replay/src/message/cases.json`).

import { base64Of, bytesOfBase64, bytesOfHex, timeOf } from "./payload.js";

/** Maximum number of objects around a message. */
const DEPTH_MAX = 4;
/** Members that only ChirpStack's uplinks have. People write `fPort` beside hexadecimal, too. */
const OF_CHIRPSTACK = ["fCnt", "rxInfo", "deviceInfo", "devEUI"];

const NO_PAYLOAD =
  "it has no payload as in ChirpStack (`data`), The Things Stack (`uplink_message.frm_payload`) or The Things Network 2 (`payload_raw`)";

/** Reads a message: its `payload`, `port`, and `timeMs`, which may be null. Throws an `Error` that says what is wrong. */
export function readNetworkMessage(text) {
  let inner = parse(withoutTopic(text.replace(/^\uFEFF+/, "")));
  for (let depth = 0; depth <= DEPTH_MAX && inner !== null; depth += 1) {
    if (Array.isArray(inner)) {
      if (inner.length > 1) throw new Error(`it is a list of ${inner.length} messages: keep one`);
      inner = inner[0] ?? null;
    } else if (typeof inner === "object") {
      const found = thingsStack(inner) ?? thingsNetwork2(inner) ?? loriot(inner) ?? own(inner) ?? chirpStack(inner);
      if (found !== null) return found;
      inner = within(inner);
    } else {
      inner = null;
    }
  }
  throw new Error(NO_PAYLOAD);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`not JSON: ${error.message}`);
  }
}

/** Of `TOPIC {…}`, as `mosquitto_sub -v` prints it, what follows the topic. */
function withoutTopic(text) {
  const [, topic, rest] = /^\s*(\S+)[ \t]([\s\S]*)$/.exec(text) ?? [];
  const isTopic = topic !== undefined && topic.includes("/") && !/[{"]/.test(topic) && /^\s*[{[]/.test(rest);
  return isTopic ? rest : text;
}

/** The message in `{"result": …}` of The Things Stack's storage, or in `{"payload": …}` of Node-RED. */
function within(message) {
  const inner = message.result ?? message.payload ?? null;
  if (typeof inner === "string") return object(inner);
  const bytes = bufferOf(inner);
  return bytes === null ? inner : object(new TextDecoder().decode(bytes));
}

function object(text) {
  try {
    const value = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `{"uplink_message": {"frm_payload": "AQ==", "f_port": 1}}`, also as the `data` of an event. */
function thingsStack(message) {
  const around = [message, message.data].find((one) => isObject(one) && isObject(one.uplink_message));
  if (around === undefined) return null;
  const uplink = around.uplink_message;
  return uplinkOf(uplink.frm_payload, uplink.f_port, [uplink.received_at, around.received_at, message.time]);
}

/** `{"payload_raw": "AQ==", "port": 1, "metadata": {"time": …}}`. */
function thingsNetwork2(message) {
  if (message.payload_raw === undefined) return null;
  return uplinkOf(message.payload_raw, message.port, [message.metadata?.time]);
}

/** `{"cmd": "rx", "EUI": "0102030405060708", "port": 1, "data": "01", "ts": 1700000000000}`, in hexadecimal. */
function loriot(message) {
  const { cmd, EUI, data, ts } = message;
  if (cmd === undefined || EUI === undefined || data === undefined) return null;
  if (cmd !== "rx" && cmd !== "gw") throw new Error(`its \`cmd\` is ${JSON.stringify(cmd)}, not "rx" or "gw" as LORIOT's are`);
  const payload = typeof data === "string" ? strictHex(data) : null;
  if (payload === null) throw new Error("its `data` is not hexadecimal, as LORIOT's is");
  return { payload, port: portOf(message.port), timeMs: Number.isSafeInteger(ts) ? ts : null };
}

/**
 * `{"dev_id": …, "kind": "up", "port": 1, "payload": "AQ==", "received": …, "outcome": …}`, as `airlock history export`
 * writes it.
 */
function own({ dev_id: device, kind, port, payload, received, outcome }) {
  if ((device ?? null) === null || kind !== "up" || typeof outcome !== "string") return null;
  return uplinkOf(payload, port, [received]);
}

/** `{"deviceInfo": …, "data": "AQ==", "fPort": 1}`. The network leaves an empty payload out, or writes it as null. */
function chirpStack(message) {
  const has = (name) => (message[name] ?? null) !== null;
  const data = message.data ?? null;
  if (data === null) {
    if (!(has("deviceInfo") || has("devEUI")) || !(has("rxInfo") || has("fPort"))) return null;
  } else if (typeof data !== "string") {
    return null;
  } else if (!OF_CHIRPSTACK.some(has)) {
    if (has("port")) throw new Error("it has `data` and `port`, which is no message of ChirpStack: write the payload alone");
    const isHex = data !== "" && strictHex(data) !== null;
    if (isHex) throw new Error("its `data` may be Base64 or hexadecimal: write the payload alone");
  }
  return uplinkOf(data, message.fPort, [message.time, message.publishedAt]);
}

/** An uplink of a payload in Base64, and of the first of `times` that is one. */
function uplinkOf(payload, port, times) {
  const known = times.map((time) => (typeof time === "string" ? timeOf(time) : null)).find((time) => time !== null);
  return { payload: payloadOf(payload ?? null), port: portOf(port), timeMs: known ?? null };
}

/** A payload in Base64, or as a `Buffer` of Node.js; none if it is left out. */
function payloadOf(payload) {
  if (payload === null) return new Uint8Array(0);
  const bytes = typeof payload === "string" ? strictBase64(payload) : bufferOf(payload);
  if (bytes === null) throw new Error("its payload is not Base64");
  return bytes;
}

/** People write payloads in more ways than networks do. */
function strictBase64(text) {
  const bytes = bytesOfBase64(text);
  return bytes !== null && base64Of(bytes) === text ? bytes : null;
}

function strictHex(text) {
  return /^[\s0-9a-f]*$/i.test(text) ? bytesOfHex(text) : null;
}

/** The bytes of `{"type": "Buffer", "data": [1, 2]}`; null if it is none. */
function bufferOf(value) {
  const isBuffer = isObject(value) && value.type === "Buffer" && Array.isArray(value.data);
  const isByte = (byte) => Number.isInteger(byte) && byte >= 0 && byte <= 255;
  return isBuffer && value.data.every(isByte) ? Uint8Array.from(value.data) : null;
}

/** Networks leave out what is zero. */
function portOf(port) {
  const number = port ?? 0;
  if (!Number.isInteger(number) || number < 0 || number > 255) throw new Error("its port is not a number from 0 to 255");
  return number;
}
