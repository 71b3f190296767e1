// The bridge as one writes it for Node: a new context and a time limit for every message, out as it came with `object`.
'use strict';
const fs = require('node:fs');
const mqtt = require('mqtt');
const vm = require('node:vm');

// How many events are confirmed between two lines that say so.
const COUNT_EVERY = 100;

const [url, file] = process.argv.slice(2);
const scripts = JSON.parse(fs.readFileSync(file, 'utf8')).map(
  (text) => new vm.Script(`${text}\n;JSON.stringify(decodeUplink({ bytes: bytes, fPort: port, recvTime: time, variables: {} }).data)`),
);

function decode(event) {
  const context = vm.createContext({
    bytes: [...Buffer.from(event.data, 'base64')], port: event.fPort, time: new Date(event.time), module: {}, exports: {},
  });
  const profile = Number(event.deviceInfo.deviceProfileId.slice(24));
  return JSON.parse(scripts[profile].runInContext(context, { timeout: 100 }));
}

let confirmed = 0;
const client = mqtt.connect(url, {
  protocolVersion: 5, clientId: 'node', clean: false, properties: { sessionExpiryInterval: 3600, receiveMaximum: 8192 },
});
client.on('message', (topic, payload) => {
  const event = JSON.parse(payload);
  try {
    event.object = decode(event);
  } catch (_) {
    // The event goes out without an object.
  }
  client.publish('airlock/' + topic, JSON.stringify(event), { qos: 1 }, () => {
    confirmed += 1;
    if (confirmed % COUNT_EVERY === 0) console.log(confirmed);
  });
});
client.on('connect', () => client.subscribe('application/+/device/+/event/up', { qos: 1 }, () => console.log('ready')));
