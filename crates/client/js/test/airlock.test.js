// The client at a running Airlock, which the environment describes. `tests/it/delivery/data_client.rs` starts one.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { DataClient } from "airlock-data-client";

const { MQTT_ADDRESS, HANDLER_URL, APP_ID, ACCESS_KEY, ACCESS_TOKEN } = process.env;
const skip = MQTT_ADDRESS ? false : "no Airlock is running: use `cargo test -p airlock --test product data_client`";
// A test that fails by waiting must end, so that its client is closed.
const OPTIONS = { skip, timeout: 60_000 };
const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** An uplink with these bytes arrives from a device. */
async function simulate(devID, ...bytes) {
  const response = await fetch(`${HANDLER_URL}/applications/${APP_ID}/devices/${devID}/simulate`, {
    method: "POST",
    headers: { authorization: `Key ${ACCESS_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ payload: Buffer.from(bytes).toString("base64"), port: 1 }),
  });
  assert.equal(response.status, 200, await response.text());
}

/** Simulates uplinks until one is heard: a subscription begins a moment after `on`. */
async function simulateUntil(heard, devID, ...bytes) {
  const isHeard = heard.then(() => true);
  while (!(await Promise.race([isHeard, simulate(devID, ...bytes)]))) {
    await new Promise(setImmediate);
  }
  return heard;
}

/** The first message that a listener hears. */
function first(client, ...names) {
  return new Promise((resolve) => client.on(...names, (devID, message) => resolve([devID, message])));
}

/** A client that is closed at the end of the test. */
function connected(context, credential = ACCESS_KEY, address = MQTT_ADDRESS) {
  const client = new DataClient(APP_ID, credential, address, { reconnectPeriod: 20 });
  context.after(() => client.close(true));
  client.on("error", (error) => {
    throw error;
  });
  return client;
}

for (const [name, credential] of [
  ["access key", ACCESS_KEY],
  ["access token", ACCESS_TOKEN],
]) {
  test(`receives uplinks with an ${name}`, OPTIONS, async (context) => {
    const client = connected(context, credential);
    const others = [];
    client.on("uplink", "dev-2", (devID) => others.push(devID));
    const [devID, uplink] = await simulateUntil(first(client, "message"), "dev-1", 1, 2);
    assert.equal(devID, "dev-1");
    assert.deepEqual([uplink.app_id, uplink.dev_id, uplink.port], [APP_ID, "dev-1", 1]);
    assert.deepEqual(uplink.payload_raw, Buffer.from([1, 2]));
    assert.deepEqual(uplink.payload_fields, { bytes: [1, 2] });
    assert.deepEqual(others, []);
    await simulateUntil(first(client, "uplink", "dev-2"), "dev-2", 3);
    assert.equal(others[0], "dev-2");
  });
}

test("sends downlinks and hears of them", OPTIONS, async (context) => {
  const client = connected(context);
  // A failed uplink is an event too, so this waits for the subscription.
  await simulateUntil(first(client, "event"), "dev-1", 255);
  for (const [payload, content] of [
    [Uint8Array.of(1, 255), { payload_raw: "Af8=" }],
    [[1, 255], { payload_raw: "Af8=" }],
    ["01ff", { payload_raw: "Af8=" }],
    [{ led: true }, { payload_fields: { led: true } }],
  ]) {
    const heard = [first(client, "event", "dev-1", "downlink/scheduled"), first(client, "device", "+", "down/scheduled")];
    await client.send("dev-1", payload, 2, true, "last");
    for (const [devID, { time, downlink_id, ...event }] of await Promise.all(heard)) {
      assert.equal(devID, "dev-1");
      assert.ok(Date.parse(time) > 0, time);
      assert.match(downlink_id, /^[0-9a-f]{16}$/);
      assert.deepEqual(event, { message: { port: 2, confirmed: true, ...content } });
    }
  }
});

test("names the credential when it is wrong", OPTIONS, async () => {
  const client = new DataClient(APP_ID, "airlock.wrong", MQTT_ADDRESS);
  const error = await new Promise((resolve) => client.on("error", resolve));
  assert.match(error.message, /does not accept this application and credential/);
});

test("receives again after the connection was lost", OPTIONS, async (context) => {
  const sockets = new Set();
  const [host, port] = MQTT_ADDRESS.split(":");
  const proxy = createServer((inner) => {
    const outer = connect(port, host);
    for (const [from, to] of [[inner, outer], [outer, inner]]) {
      sockets.add(from.pipe(to));
      from.on("error", () => to.destroy());
    }
  });
  await once(proxy.listen(0, "127.0.0.1"), "listening");
  context.after(() => proxy.close());
  const client = connected(context, ACCESS_KEY, `127.0.0.1:${proxy.address().port}`);
  await simulateUntil(first(client, "uplink"), "dev-1", 1);
  const events = ["disconnect", "reconnect", "connect"].map((name) => new Promise((resolve) => client.on(name, resolve)));
  sockets.forEach((socket) => socket.destroy());
  await Promise.all(events);
  await simulateUntil(first(client, "uplink"), "dev-1", 1);
});

test("the example of the README works", OPTIONS, async (context) => {
  const [, example] = /```js\n(.*?)```/s.exec(readFileSync(`${PACKAGE}/README.md`, "utf8"));
  const program = spawn("node", ["--input-type=module", "--eval", example], { cwd: PACKAGE, stdio: ["ignore", "pipe", "inherit"] });
  context.after(() => program.kill());
  let output = "";
  const hasShown = new Promise((resolve) => {
    program.stdout.on("data", (text) => (output += text).includes("dev-1 { bytes: [ 7 ] }\n") && resolve());
    program.on("close", resolve);
  });
  await simulateUntil(hasShown, "dev-1", 7);
  assert.match(output, /^connected\ndev-1 \{ bytes: \[ 7 \] \}\n/);
});
