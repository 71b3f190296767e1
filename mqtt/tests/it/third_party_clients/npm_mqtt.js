// The npm package `mqtt` over WebSocket, in both versions of MQTT that it is used with.
// Told by the environment: URL.

const assert = require("node:assert/strict");
const { once } = require("node:events");
const mqtt = require("mqtt");

const down = (device) => `app-one/devices/${device}/down`;

function options(version, key, more) {
  return { protocolVersion: version, username: "app-one", password: key, reconnectPeriod: 0, ...more };
}

async function connect(version, key, more) {
  const client = mqtt.connect(process.env.URL, options(version, key, more));
  client.got = [];
  client.waiting = [];
  client.on("message", (topic, body, packet) => {
    const take = client.waiting.shift();
    const message = { topic, body: body.toString(), packet };
    take ? take(message) : client.got.push(message);
  });
  client.next = () =>
    client.got.length ? Promise.resolve(client.got.shift()) : new Promise((take) => client.waiting.push(take));
  const [connack] = await once(client, "connect");
  return [client, connack];
}

async function publishesAndReceives(version) {
  const [client] = await connect(version, "account.both");
  const granted = await client.subscribeAsync("+/devices/+/down", { qos: 2 });
  assert.equal(granted[0].qos, 1);
  for (const qos of [0, 1, 2]) {
    await client.publishAsync(down("web"), `with ${qos}`, { qos });
    const { topic, body, packet } = await client.next();
    assert.deepEqual([topic, body, packet.qos], [down("web"), `with ${qos}`, Math.min(qos, 1)]);
  }
  const large = "x".repeat(60_000);
  await client.publishAsync(down("web"), large, { qos: 1 });
  assert.equal((await client.next()).body, large);
  await client.endAsync();
}

async function keepsASession(version) {
  const kept = { clean: false, clientId: `kept-${version}`, properties: { sessionExpiryInterval: 600 } };
  if (version < 5) delete kept.properties;
  const [first, connack] = await connect(version, "account.read", kept);
  assert.equal(connack.sessionPresent, false);
  await first.subscribeAsync(down("kept"), { qos: 1 });
  await first.endAsync();
  const [sender] = await connect(version, "account.write");
  await sender.publishAsync(down("kept"), "while it was away", { qos: 1 });
  const [second, again] = await connect(version, "account.read", kept);
  assert.equal(again.sessionPresent, true);
  assert.equal((await second.next()).body, "while it was away");
  await Promise.all([second.endAsync(), sender.endAsync()]);
}

async function isRefused(version) {
  for (const [key, code3, code5] of [["account.wrong", 4, 0x86], ["", 4, 0x86], ["account.nothing", 5, 0x87]]) {
    const client = mqtt.connect(process.env.URL, options(version, key));
    const [error] = await once(client, "error");
    assert.equal(error.code, version === 5 ? code5 : code3, key);
    client.end(true);
  }
  const [reader] = await connect(version, "account.read");
  await assert.rejects(reader.subscribeAsync("app-two/#", { qos: 1 }), /Unspecified error|Not authorized/i);
  await reader.endAsync();
}

async function main() {
  for (const version of [4, 5]) {
    for (const run of [publishesAndReceives, keepsASession, isRefused]) {
      console.log(version, run.name);
      await run(version);
    }
  }
  console.log("done");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
