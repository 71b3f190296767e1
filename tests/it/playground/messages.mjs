// What the page reads in the field of payloads. The texts of networks are those of
// `cli/commands/functions/network_message.rs`.

import assert from "node:assert/strict";
import { test } from "node:test";

const root = new URL("../../../web/playground/", import.meta.url);
const { readMessages } = await import(new URL("messages.js", root));
const { readNetworkMessage } = await import(new URL("network_message.js", root));
const { fromFragment, toFragment } = await import(new URL("link.js", root));
const { leavesOf } = await import(new URL("byte_map.js", root));

const DEFAULTS = { port: 1, timeMs: null, notation: "" };

function hex(text, settings = {}) {
  return readMessages(text, { ...DEFAULTS, ...settings }).map(({ payload, port, problem }) => problem ?? `${port} ${Buffer.from(payload).toString("hex")}`);
}

test("a line is a payload in hexadecimal or Base64, which may name its port", () => {
  assert.deepEqual(hex("095C\n\n  09 5c \n0x09,0x5c\nCVw=\n85: 01:02\n0:\n2: CVw"), ["1 095c", "1 095c", "1 095c", "1 095c", "85 0102", "0 ", "2 095c"]);
  assert.deepEqual(hex("abcd", { notation: "base64", port: 9 }), ["9 69b71d"]);
  assert.match(hex("CVw=", { notation: "hex" })[0], /^hexadecimal has/);
  assert.match(hex("zz!")[0], /^it is neither/);
  assert.match(hex("256: 00")[0], /^256 is no port/);
});

test("messages of networks stand on a line each, or one on several lines", () => {
  const one = '{"deviceInfo": {}, "fPort": 2, "data": "AQI="}';
  assert.deepEqual(hex(`${one}\n03\napplication/a/device/d/event/up ${one}`), ["2 0102", "1 03", "2 0102"]);
  assert.deepEqual(hex(JSON.stringify(JSON.parse(one), null, 2)), ["2 0102"]);
  assert.match(hex("{}")[0], /^it has no payload/);
});

test("payload, port and time of each network are found", () => {
  for (const [text, port, time] of [
    ['{"time": "2026-01-02T03:04:05Z", "fPort": 2, "data": "AQI=", "deviceInfo": {}}', 2, "2026-01-02T03:04:05Z"],
    ['{"fPort": 7, "data": "AQI=", "publishedAt": "nonsense"}', 7, null],
    ['{"end_device_ids": {}, "received_at": "2026-01-02T03:04:06Z", "uplink_message": {"f_port": 3, "frm_payload": "AQI="}}', 3, "2026-01-02T03:04:06Z"],
    ['{"name": "as.up.data.forward", "data": {"uplink_message": {"f_port": 3, "frm_payload": "AQI="}}}', 3, null],
    ['{"port": 4, "payload_raw": "AQI=", "metadata": {"time": "2026-01-02T03:04:07Z"}}', 4, "2026-01-02T03:04:07Z"],
    ['{"data": "AQI="}', 0, null],
    ['{"cmd": "rx", "EUI": "0102", "ts": 1767323045000, "port": 2, "data": "0102"}', 2, "2026-01-02T03:04:05Z"],
    ['v3/app@tenant/devices/d/up {"uplink_message": {"f_port": 3, "frm_payload": "AQI="}}', 3, null],
    ['{"result": {"uplink_message": {"f_port": 3, "frm_payload": "AQI="}}}', 3, null],
    ['[{"fPort": 2, "data": "AQI="}]', 2, null],
    ['{"topic": "a/b", "payload": {"fPort": 2, "data": "AQI="}, "qos": 0, "_msgid": "1"}', 2, null],
    ['{"topic": "a/b", "payload": "{\\"fPort\\": 2, \\"data\\": \\"AQI=\\"}"}', 2, null],
    ['{"payload": {"type": "Buffer", "data": [123, 34, 100, 97, 116, 97, 34, 58, 34, 65, 81, 73, 61, 34, 125]}}', 0, null],
    ['{"port": 4, "payload_raw": {"type": "Buffer", "data": [1, 2]}, "payload_fields": {}}', 4, null],
  ]) {
    const found = readNetworkMessage(text);
    assert.deepEqual([Buffer.from(found.payload).toString("hex"), found.port, found.timeMs], ["0102", port, time && Date.parse(time)], text);
  }
});

test("a payload that networks leave out is empty", () => {
  for (const [text, port] of [
    ['{"deviceInfo": {}, "fCnt": 1, "fPort": 2, "rxInfo": [], "object": {}}', 2],
    ['{"devEUI": "AQ==", "fCnt": 1, "fPort": 2, "data": null, "rxInfo": []}', 2],
    ['{"uplink_message": {"f_port": 3, "rx_metadata": []}}', 3],
    ['{"payload_raw": null, "port": 4}', 4],
  ]) {
    const found = readNetworkMessage(text);
    assert.deepEqual([found.payload.length, found.port], [0, port], text);
  }
});

test("what is no uplink is refused with a reason", () => {
  for (const [text, reason] of [
    ["{", "not JSON"],
    ["{}", "it has no payload"],
    ['{"data": {}}', "it has no payload"],
    ['{"data": "!"}', "not Base64"],
    ['{"data": "", "fPort": 256}', "not a number from 0 to 255"],
    ['{"data": "", "fPort": "1"}', "not a number from 0 to 255"],
    ['{"cmd": "rx", "EUI": "0102", "port": 2, "data": "AQI="}', "not hexadecimal, as LORIOT's is"],
    ['{"cmd": "txd", "EUI": "0102", "data": "0102"}', 'its `cmd` is "txd"'],
    ['{"data": "aa01"}', "may be Base64 or hexadecimal"],
    ['{"data": "AQI=", "port": 2}', "no message of ChirpStack"],
    ['{"deviceInfo": {}, "time": "2026-01-02T03:04:05Z", "devAddr": "01020304"}', "it has no payload"],
    ['{"end_device_ids": {}, "join_accept": {}}', "it has no payload"],
    ['[{"fPort": 2, "data": "AQI="}, {"fPort": 2, "data": "AQI="}]', "a list of 2 messages"],
  ]) {
    assert.throws(() => readNetworkMessage(text), (error) => error.message.includes(reason), text);
  }
});

test("a link holds what was typed, and one that is damaged or too long holds nothing", async () => {
  const state = { text: "function é() {}\n".repeat(20_000), payloads: "01\n\ud83d\ude00" };
  const fragment = await toFragment(state);
  assert.ok(fragment.length < 4000, `${fragment.length}`);
  assert.deepEqual(await fromFragment(`#${fragment}`), state);
  const bomb = await toFragment({ text: "x".repeat(3 << 20) });
  for (const other of ["", "#", "#codec", "#1.", "#1.AAAA", `#${fragment.slice(0, -20)}`, `#${bomb}`]) {
    assert.equal(await fromFragment(other), null, other.slice(0, 40));
  }
});

test("fields have paths", () => {
  const leaves = leavesOf('{"a": {"b": [1, {"c": null}]}, "d": {}, "e": []}');
  assert.deepEqual([...leaves], [["a.b[0]", "1"], ["a.b[1].c", "null"], ["d", "{}"], ["e", "[]"]]);
});
