// What the page reads in the field of payloads. The messages of networks are those that `airlock functions run --message`
// is tested with.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../../web/playground/", import.meta.url);
const { readMessages } = await import(new URL("messages.js", root));
const { readNetworkMessage } = await import(new URL("network_message.js", root));
const { fromFragment, toFragment } = await import(new URL("link.js", root));
const { leavesOf } = await import(new URL("byte_map.js", root));

const { uplinks, refusals } = JSON.parse(readFileSync(new URL("../../../replay/src/message/cases.json", import.meta.url), "utf8"));
const DEFAULTS = { port: 1, timeMs: null, notation: "" };

function hex(text, settings = {}) {
  return readMessages(text, { ...DEFAULTS, ...settings }).map(({ payload, port, problem }) => problem ?? `${port} ${Buffer.from(payload).toString("hex")}`);
}

test("a line is a payload in hexadecimal or Base64, which may name its port", () => {
  assert.deepEqual(hex("095C\n\n  09 5c \n0x09,0x5c\nCVw=\n85: 01:02\n0:\n2: CVw"), ["1 095c", "1 095c", "1 095c", "1 095c", "85 0102", "0 ", "2 095c"]);
  assert.deepEqual(hex("abcd", { notation: "base64", port: 9 }), ["9 69b71d"]);
  assert.match(hex("CVw=", { notation: "hex" })[0], /^hexadecimal has/);
  assert.match(hex("zz!")[0], /^it is neither/);
  // Base64 that one digit makes of hexadecimal is not what somebody means, unless they say so.
  for (const odd of ["095", "0x09 5", "2: 09:5c:0"]) assert.match(hex(odd)[0], /^hexadecimal has two digits/);
  assert.deepEqual(hex("095", { notation: "base64" }), ["1 d3de"]);
  assert.deepEqual(readMessages("095c\nCVw=", DEFAULTS).map(({ isTakenForBase64 }) => isTakenForBase64), [false, true]);
  assert.match(hex("256: 00")[0], /^256 is no port/);
});

test("messages of networks stand on a line each, or one on several lines", () => {
  const one = '{"deviceInfo": {}, "fPort": 2, "data": "AQI="}';
  assert.deepEqual(hex(`${one}\n03\napplication/a/device/d/event/up ${one}`), ["2 0102", "1 03", "2 0102"]);
  assert.deepEqual(hex(JSON.stringify(JSON.parse(one), null, 2)), ["2 0102"]);
  assert.match(hex("{}")[0], /^it has no payload/);
});

test("payload, port and time of each network are found", () => {
  assert.ok(uplinks.length > 20);
  for (const { text, payload, port, time } of uplinks) {
    const found = readNetworkMessage(text);
    assert.deepEqual([Buffer.from(found.payload).toString("hex"), found.port, found.timeMs], [payload, port, time && Date.parse(time)], text);
  }
});

test("a payload may be longer than the arguments of a call", () => {
  const data = Buffer.alloc(300_000, 7).toString("base64");
  assert.equal(readNetworkMessage(JSON.stringify({ deviceInfo: {}, data })).payload.length, 300_000);
});

test("what is no uplink is refused with a reason", () => {
  assert.ok(refusals.length > 15);
  for (const { text, reason } of refusals) {
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
