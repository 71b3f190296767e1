// Subscriptions, connection events, and closing, at a broker that the test controls.

import assert from "node:assert/strict";
import { once, EventEmitter } from "node:events";
import { test } from "node:test";

import { DataClient } from "airlock-data-client";

import { Broker } from "./broker.js";

/** A client that is closed at the end of the test. */
function connecting(context, address, credential = "key") {
  const client = new DataClient("my-app", credential, address, { reconnectPeriod: 20 });
  context.after(() => client.close(true));
  return client;
}

/** A client that is connected, with its connection events. */
async function connected(context, broker) {
  const client = connecting(context, broker.address);
  const events = new EventEmitter();
  for (const name of ["error", "connect", "disconnect", "reconnect", "close"]) {
    client.on(name, (value) => events.emit(name === "error" ? "refused" : name, value));
  }
  await once(events, "connect");
  const { username, password } = await broker.next();
  assert.deepEqual([username, password.toString()], ["my-app", "key"]);
  return { client, events };
}

/** The next packet is a subscription to this filter. */
async function subscribed(broker, filter) {
  const { cmd, subscriptions } = await broker.next();
  assert.deepEqual([cmd, subscriptions?.[0].topic, subscriptions?.[0].qos], ["subscribe", `my-app/devices/${filter}`, 1]);
}

async function unsubscribed(broker, filter) {
  const { cmd, unsubscriptions } = await broker.next();
  assert.deepEqual([cmd, unsubscriptions], ["unsubscribe", [`my-app/devices/${filter}`]]);
}

test("subscribes at least once to what listeners need, until the last is off", async (context) => {
  const broker = await Broker.start(context);
  const { client } = await connected(context, broker);
  const [first, second] = [() => {}, () => {}];
  client.on("uplink", first);
  await subscribed(broker, "+/up");
  client.on("message", second);
  client.off("uplink", first);
  client.on("event", "dev-1", "downlink/sent", first);
  await subscribed(broker, "dev-1/events/down/sent");
  client.off("message", "+", second);
  await unsubscribed(broker, "+/up");
  client.off("event", "dev-1", "down/sent", second);
  client.off("device", "dev-1", "down/sent", first);
  await unsubscribed(broker, "dev-1/events/down/sent");
});

test("does not subscribe twice to the same messages", async (context) => {
  const broker = await Broker.start(context);
  const { client } = await connected(context, broker);
  const heard = [];
  const [all, one] = [(devID) => heard.push(`all ${devID}`), (devID) => heard.push(`one ${devID}`)];
  client.on("uplink", "dev-1", one);
  await subscribed(broker, "dev-1/up");
  client.on("uplink", all);
  await subscribed(broker, "+/up");
  await unsubscribed(broker, "dev-1/up");
  const done = new Promise((resolve) => client.on("uplink", "dev-3", resolve));
  for (const devID of ["dev-1", "dev-2", "dev-3"]) {
    broker.publish(`my-app/devices/${devID}/up`, { port: 1 });
  }
  await done;
  assert.deepEqual(heard, ["one dev-1", "all dev-1", "all dev-2", "all dev-3"]);
  client.off("uplink", all);
  await subscribed(broker, "dev-1/up");
});

test("joins reach their listeners under each of their names", async (context) => {
  const broker = await Broker.start(context);
  const { client } = await connected(context, broker);
  const joined = { app_eui: "70B3D57EF000001C", dev_eui: "0004A30B001B7AD2", dev_addr: "26012723", metadata: { time: "" } };
  const heard = [["activation"], ["activations", "dev-1"], ["event"], ["device", "+", "activations"]].map(
    (names) => new Promise((resolve) => client.on(...names, (...values) => resolve(values))),
  );
  await subscribed(broker, "+/events/#");
  broker.publish("my-app/devices/dev-1/events/activations", joined);
  for (const values of await Promise.all(heard)) {
    assert.deepEqual(values, ["dev-1", joined]);
  }
});

test("connects and subscribes again when the connection is lost", async (context) => {
  const broker = await Broker.start(context);
  const { port } = broker;
  const { client, events } = await connected(context, broker);
  client.on("uplink", () => {});
  await subscribed(broker, "+/up");
  const names = [];
  for (const name of ["disconnect", "reconnect", "close", "connect", "refused"]) {
    events.on(name, () => names.includes(name) || names.push(name));
  }
  await Promise.all([once(events, "close"), broker.stop()]);
  const again = await Broker.start(context, {}, port);
  await once(events, "connect");
  assert.deepEqual(names, ["disconnect", "reconnect", "close", "connect"]);
  assert.equal((await again.next()).cmd, "connect");
  await subscribed(again, "+/up");
});

test("says that the first connection failed, and tries again", async (context) => {
  const gone = await Broker.start(context);
  const { port } = gone;
  await gone.stop();
  const client = connecting(context, `127.0.0.1:${port}`);
  const error = await new Promise((resolve) => client.on("error", resolve));
  assert.match(error.message, /cannot reach the MQTT broker at 127.0.0.1:\d+: check that it runs there/);
  assert.equal(error.code, "ECONNREFUSED");
  const connect = new Promise((resolve) => client.on("connect", resolve));
  const broker = await Broker.start(context, {}, port);
  await connect;
});

test("does not try a refused credential again", async (context) => {
  let attempts = 0;
  const refuse = () => {
    attempts += 1;
    return { cmd: "connack", reasonCode: 134 };
  };
  const broker = await Broker.start(context, { connect: refuse });
  const client = connecting(context, broker.address, "wrong");
  const error = await new Promise((resolve) => client.on("error", resolve));
  assert.match(error.message, /does not accept this application and credential: check both/);
  assert.equal(error.code, 134);
  // It has closed itself, so this waits only for what it had begun.
  await client.close();
  assert.equal(attempts, 1);
});

test("tries again when the broker is not available yet", async (context) => {
  const codes = [136, 0];
  const broker = await Broker.start(context, { connect: () => ({ cmd: "connack", reasonCode: codes.shift() }) });
  const client = connecting(context, broker.address);
  const names = [];
  client.on("error", () => names.push("error"));
  client.on("close", () => names.push("close"));
  await new Promise((resolve) => client.on("connect", resolve));
  assert.deepEqual(names, ["close", "error"]);
});

test("reports refused subscriptions and downlinks", async (context) => {
  const broker = await Broker.start(context, {
    subscribe: ({ messageId }) => ({ cmd: "suback", messageId, granted: [135] }),
    publish: ({ messageId }) => ({ cmd: "puback", messageId, reasonCode: 135 }),
  });
  const { client, events } = await connected(context, broker);
  client.on("uplink", () => {});
  const [subscription] = await once(events, "refused");
  assert.match(subscription.message, /`my-app\/devices\/\+\/up`: the credential needs the right `messages:up:r`/);
  const told = once(events, "refused");
  await assert.rejects(client.send("dev-1", [1]), /dev-1: the credential needs the right `messages:down:w`/);
  await told;
});

/** A downlink that the broker has received and not acknowledged. */
async function unacknowledged(context) {
  const broker = await Broker.start(context, { publish: () => undefined });
  const { client } = await connected(context, broker);
  const heard = new Promise((resolve) => client.on("uplink", resolve));
  await subscribed(broker, "+/up");
  const sent = client.send("dev-1", [1], 2, true, "first");
  const { topic, payload, qos, messageId } = await broker.next();
  assert.deepEqual([topic, qos], ["my-app/devices/dev-1/down", 1]);
  assert.deepEqual(JSON.parse(payload), { port: 2, confirmed: true, schedule: "first", payload_raw: "AQ==" });
  return { broker, client, sent, messageId, heard };
}

test("closing waits for the acknowledgements of downlinks", async (context) => {
  const { broker, client, sent, messageId, heard } = await unacknowledged(context);
  let isClosed = false;
  const closed = new Promise((resolve) => client.close(resolve)).then(() => (isClosed = true));
  broker.publish("my-app/devices/dev-1/up", {});
  await heard;
  assert.equal(isClosed, false);
  broker.send({ cmd: "puback", messageId, reasonCode: 0 });
  await Promise.all([sent, closed]);
});

test("closing by force waits for nothing", async (context) => {
  const { broker, client, sent } = await unacknowledged(context);
  const closed = new Promise((resolve) => client.end(true, resolve));
  await assert.rejects(sent, /closed before the broker answered/);
  await closed;
});

test("a listener that throws affects neither the others nor the connection", async (context) => {
  const broker = await Broker.start(context);
  const { client } = await connected(context, broker);
  const thrown = [];
  context.mock.method(globalThis, "queueMicrotask", (task) => {
    try {
      task();
    } catch ({ message }) {
      thrown.push(message);
    }
  });
  client.on("uplink", () => {
    throw new Error("mine");
  });
  const heard = new Promise((resolve) => client.on("uplink", resolve));
  await subscribed(broker, "+/up");
  broker.publish("my-app/devices/dev-1/up", {});
  assert.equal(await heard, "dev-1");
  assert.deepEqual(thrown, ["mine"]);
});

test("a stream has the messages of its listener, and drops the oldest that nobody takes", async (context) => {
  const broker = await Broker.start(context);
  const { client } = await connected(context, broker);
  const stream = client.stream("uplink", "dev-1");
  await subscribed(broker, "dev-1/up");
  const last = new Promise((resolve) => client.on("uplink", "dev-1", (_, { counter }) => counter === 1001 && resolve()));
  for (let counter = 0; counter < 1002; counter += 1) {
    broker.publish("my-app/devices/dev-1/up", { counter, payload_raw: "AQ==" });
  }
  await last;
  const counters = [];
  for await (const [devID, { counter, payload_raw }] of stream) {
    assert.deepEqual([devID, payload_raw], ["dev-1", Buffer.from([1])]);
    counters.push(counter);
    if (counter === 1001) {
      break;
    }
  }
  assert.deepEqual([counters[0], counters.length, stream.dropped], [2, 1000, 2]);
  const other = client.stream("event");
  await client.close();
  assert.deepEqual(await other.next(), { done: true, value: undefined });
});
