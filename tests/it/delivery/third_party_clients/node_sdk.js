// The Things Network's own client for Node.js, as it was published: what people's programs do with it.
// Told by the environment: ADDRESS, APP_ID, ACCESS_KEY. Prints how far it is.

const assert = require("node:assert/strict");
const { once } = require("node:events");
const ttn = require("ttn");

const { ADDRESS, APP_ID, ACCESS_KEY } = process.env;

function open(accessKey) {
  const client = new ttn.Client(ADDRESS, APP_ID, accessKey, { reconnectPeriod: 0 });
  // It does not tell when its subscriptions count.
  client.subscribed = 0;
  client.mqtt.on("packetreceive", (packet) => (client.subscribed += packet.cmd === "suback"));
  return client;
}

/** Calls of one listener, one after the other. */
function heard(client, ...event) {
  const calls = [];
  const waiting = [];
  const listener = (...call) => (waiting.length ? waiting.shift()(call) : calls.push(call));
  client.on(...event, listener);
  const next = () => (calls.length ? Promise.resolve(calls.shift()) : new Promise((take) => waiting.push(take)));
  return { next, calls, listener };
}

async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function isRefused() {
  const client = open("account.wrong");
  const [error] = await once(client.ee, "error");
  assert.match(error.message, /Connection refused: Bad username or password/);
  client.end();
}

async function receivesUplinks(of) {
  console.log("ready");
  const [devId, message] = await of.any.next();
  assert.equal(devId, "dev-1");
  assert.deepEqual([message.app_id, message.dev_id, message.port], [APP_ID, "dev-1", 4]);
  assert.ok(Buffer.isBuffer(message.payload_raw));
  assert.deepEqual([...message.payload_raw], [1, 2]);
  assert.deepEqual(message.payload_fields, { led: true, level: { battery: 2 } });
  assert.deepEqual((await of.one.next())[1].payload_fields, message.payload_fields);
  assert.deepEqual(await of.field.next(), ["dev-1", true]);
  assert.deepEqual(await of.nested.next(), ["dev-1", 2]);
  assert.deepEqual(of.other.calls, []);
}

async function sendsDownlinks(client, of) {
  client.send("dev-1", { led: false });
  const scheduled = { port: 1, payload_fields: { led: false } };
  for (const listener of [of.scheduled, of.events]) {
    const [devId, event] = await listener.next();
    assert.deepEqual([devId, event.message], ["dev-1", scheduled]);
  }
  client.send("dev-1", [7, 8], 9);
  assert.equal((await of.scheduled.next())[1].message.payload_raw, "Bwg=");
  await of.events.next();
  client.send("dev-1", Buffer.from([9]), 0);
  client.send("dev-1", {}, 300);
  for (;;) {
    const [devId, event] = await of.events.next();
    if (event.error) {
      assert.equal(devId, "dev-1");
      break;
    }
  }
}

async function hearsOfActivations(of) {
  console.log("joins");
  const [devId, activation] = await of.activations.next();
  assert.deepEqual([devId, activation.dev_eui], ["joining", "0004A30B001C0530"]);
  assert.match(activation.dev_addr, /^[0-9A-F]{8}$/);
  assert.deepEqual(await of.everything.next(), [devId, activation]);
}

async function stopsListening(client, of) {
  client.off("message", of.any.listener);
  await until(() => client.unsubscribed);
  console.log("again");
  await of.one.next();
  assert.deepEqual(of.any.calls, []);
}

async function main() {
  await isRefused();
  const client = open(ACCESS_KEY);
  client.mqtt.on("packetreceive", (packet) => (client.unsubscribed ||= packet.cmd === "unsuback"));
  await once(client.ee, "connect");
  const of = {
    any: heard(client, "message"),
    one: heard(client, "message", "dev-1"),
    other: heard(client, "message", "joining"),
    field: heard(client, "message", null, "led"),
    nested: heard(client, "message", "dev-1", "level/battery"),
    scheduled: heard(client, "device", null, "down/scheduled"),
    events: heard(client, "device", "dev-1"),
    everything: heard(client, "device", "joining"),
    activations: heard(client, "activation"),
  };
  await until(() => client.subscribed === Object.keys(of).length);
  await receivesUplinks(of);
  await sendsDownlinks(client, of);
  await hearsOfActivations(of);
  await stopsListening(client, of);
  client.end(false, () => console.log("done"));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
