// What the client accepts, and how it explains what it does not.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { DataClient } from "airlock-data-client";

import { brokerUrl } from "../src/address.js";
import { downlinkJson } from "../src/downlink.js";

test("a payload may have any of four forms", () => {
  const raw = { port: 1, confirmed: false, schedule: "last", payload_raw: "Af8=" };
  for (const payload of [Uint8Array.of(1, 255), Buffer.from([1, 255]), [1, 255], "01FF", "01 ff"]) {
    assert.deepEqual(JSON.parse(downlinkJson(payload, 1, false, "last")), raw);
  }
  const fields = { port: 0, confirmed: true, schedule: "first", payload_fields: { led: true } };
  assert.deepEqual(JSON.parse(downlinkJson({ led: true }, 0, true, "first")), fields);
});

test("wrong arguments of a downlink are refused with what to give instead", () => {
  for (const [given, message] of [
    [[[1, 256]], /element 1 must be an integer from 0 to 255/],
    [["0x01"], /must be in hexadecimal/],
    [["012"], /two digits for each byte/],
    [[""], /payload is empty/],
    [[new Uint8Array()], /payload is empty/],
    [[null], /must be a Uint8Array/],
    [[new Date()], /must be a Uint8Array/],
    [[[1], 256], /port `256` not valid: must be an integer from 0 to 255/],
    [[[1], "1"], /port/],
    [[[1], 1, "yes"], /must be true or false/],
    [[[1], 1, false, "now"], /must be one of replace, first, last/],
  ]) {
    const [payload, port = 1, confirmed = false, schedule = "replace"] = given;
    assert.throws(() => downlinkJson(payload, port, confirmed, schedule), message);
  }
});

test("an address is a host and port, or a URL", () => {
  assert.equal(brokerUrl("localhost:1883"), "mqtt://localhost:1883");
  assert.equal(brokerUrl("mqtts://broker.example"), "mqtts://broker.example");
  assert.equal(brokerUrl("wss://broker.example/mqtt", true), "wss://broker.example/mqtt");
  for (const address of ["", undefined, "http://localhost", "mqtt://", "mqtt://me@localhost", "localhost:port"]) {
    assert.throws(() => brokerUrl(address), /must be host:port, mqtt:/, String(address));
  }
  assert.throws(() => brokerUrl("localhost:1883", true), /give the broker's ws:\/\/ or wss:\/\/ address/);
});

test("a client needs an application and a credential", () => {
  assert.throws(() => new DataClient("My App", "key", "localhost:1"), /application id `My App` not valid/);
  assert.throws(() => new DataClient("my-app", "", "localhost:1"), /give an access key or an access token/);
});

test("listeners need a known event and a callback", async () => {
  const client = new DataClient("my-app", "key", "localhost:1");
  client.on("error", () => {});
  for (const name of ["on", "off"]) {
    assert.throws(() => client[name]("uplinks", () => {}), /`uplinks` is not an event: must be one of uplink, message/);
    assert.throws(() => client[name]("uplink"), /callback of `uplink` is missing/);
    assert.throws(() => client[name]("uplink", "dev-1"), /callback of `uplink` is missing/);
    assert.throws(() => client[name]("connect", "dev-1", () => {}), /give only a callback/);
  }
  assert.throws(() => client.stream("connect"), /has no messages/);
  await client.close(true);
  assert.throws(() => client.send("dev-1", [1]), /the client is closed/);
  assert.throws(() => client.stream("uplink"), /the client is closed/);
});

test("the package can also be required, in versions of Node.js that can", () => {
  if (process.features.require_module) {
    assert.equal(createRequire(import.meta.url)("airlock-data-client").DataClient, DataClient);
  }
});
