// Decodes stored uplinks as one does with Node: a new context and a time limit for each. Lines come in and go out.
'use strict';
const fs = require('node:fs');
const readline = require('node:readline');
const vm = require('node:vm');

const CALL = `JSON.stringify(typeof decodeUplink === 'function'
  ? decodeUplink({ bytes: bytes, fPort: port, recvTime: time, variables: {} }).data
  : typeof Decode === 'function' ? Decode(port, bytes, {}) : Decoder(bytes, port))`;

const codecs = process.argv[2];
const scripts = {};

function script(app) {
  scripts[app] ??= new vm.Script(`${fs.readFileSync(`${codecs}/${app}.js`, 'utf8')}\n;${CALL}`);
  return scripts[app];
}

function decode({ app_id, port, payload, received }) {
  const context = vm.createContext({
    bytes: [...Buffer.from(payload, 'base64')], port, time: new Date(received), module: {}, exports: {},
  });
  return script(app_id).runInContext(context, { timeout: 100 });
}

const out = fs.createWriteStream(process.argv[3]);
const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const uplink = JSON.parse(line);
  let made = null;
  try {
    made = decode(uplink);
  } catch (_) {
    // The line says that there is no result.
  }
  const same = made === JSON.stringify(JSON.parse(uplink.result));
  out.write(`{"dev_id":${JSON.stringify(uplink.dev_id)},"fields":${made ?? null},"same":${same}}\n`);
});
lines.on('close', () => out.end());
