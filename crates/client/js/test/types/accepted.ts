// What the types accept, and what they refuse.

import { DataClient, type MessageStream, type Uplink } from "airlock-data-client";

const client = new DataClient("my-app", "key", "localhost:1883", { clientId: "me", clean: false });

client.on("uplink", (devID: string, uplink) => uplink.payload_fields?.["temperature"] ?? devID);
client.on("message", "dev-1", (_devID, { payload_raw }) => payload_raw?.length);
client.on("uplink", "+", "temperature", (_devID, value: unknown) => value);
client.on("activation", "dev-1", (_devID, { dev_addr }) => dev_addr.toUpperCase());
client.on("event", "+", "down/errors", (_devID, { error, message }) => `${error} ${message?.port}`);
client.on("device", (_devID, event) => event);
client.on("error", (error) => error.message);
client.on("connect", (connack) => connack.sessionPresent);
client.off("disconnect", (cause) => cause);

const uplinks: MessageStream<Uplink> = client.stream("uplink");
for await (const [devID, { counter }] of uplinks) {
  await client.send(devID, counter > 1 ? [1, 2] : { led: true }, 1, false, "last");
  await client.send(devID, "01ff");
}
await client.close(true, () => {});
await client.end(() => {});

// @ts-expect-error There is no such event.
client.on("uplinks", () => {});
// @ts-expect-error The callback is missing.
client.on("uplink", "dev-1");
// @ts-expect-error There is no such event of a device.
client.on("event", "+", "down/sents", () => {});
// @ts-expect-error There is no such schedule.
await client.send("dev-1", [1], 1, false, "now");
// @ts-expect-error A payload is no number.
await client.send("dev-1", 1);
// @ts-expect-error The client needs an address.
new DataClient("my-app", "key");
