// Answers uplinks with downlinks, and shows what it sent when it hears that a downlink is scheduled.

import { DataClient } from "airlock-data-client";

const show = (text) => (document.querySelector("h1").textContent = text);
const parameters = new URLSearchParams(location.search);
const [appID, accessKey, broker] = ["app_id", "access_key", "broker"].map((name) => parameters.get(name));
const client = new DataClient(appID, accessKey, `ws://${broker}`);

client.on("error", (error) => show(error.message));
const answer = (devID, { payload_raw }) => client.send(devID, payload_raw);
client.on("uplink", "dev-1", answer);
client.on("event", "+", "downlink/scheduled", (devID, { message }) => {
  client.off("uplink", "dev-1", answer);
  client.close(() => show(`${devID} gets ${message.payload_raw}`));
});
