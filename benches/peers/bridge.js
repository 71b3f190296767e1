// The bridge as one writes it for Node: a new context and a time limit for every message, out as it came with `object`.
// Its processes share the events; the first one only counts what they have published.
'use strict';
const cluster = require('node:cluster');
const fs = require('node:fs');
const mqtt = require('mqtt');
const vm = require('node:vm');

// How many events are confirmed between two reports.
const COUNT_EVERY = 10;
const EVENTS = '$share/node/application/+/device/+/event/up';

const [url, file, processes] = process.argv.slice(2);

function count() {
  const workers = Array.from({ length: Number(processes) }, (_, number) => cluster.fork({ NUMBER: number }));
  let ready = 0;
  let confirmed = 0;
  cluster.on('message', (_, message) => {
    if (message === 'ready') {
      ready += 1;
      if (ready === workers.length) console.log(`ready ${workers.map((worker) => worker.process.pid).join(' ')}`);
    } else {
      confirmed += message;
      console.log(confirmed);
    }
  });
}

function work() {
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
    protocolVersion: 5, clientId: `node-${process.env.NUMBER}`, clean: false,
    properties: { sessionExpiryInterval: 3600, receiveMaximum: 8192 },
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
      if (confirmed % COUNT_EVERY === 0) process.send(COUNT_EVERY);
    });
  });
  client.on('connect', () => client.subscribe(EVENTS, { qos: 1 }, () => process.send('ready')));
}

if (cluster.isPrimary) count();
else work();
