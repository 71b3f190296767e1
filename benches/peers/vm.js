// Runs codecs as servers on Node do: a new context and a time limit for every message. One request per line.
'use strict';
const readline = require('node:readline');
const vm = require('node:vm');

const CALLS = {
  Decoder: 'Decoder(bytes, port)',
  Decode: 'Decode(port, bytes, {})',
  decodeUplink: 'decodeUplink({ bytes: bytes, fPort: port }).data',
};

function run(text, name, [port, bytes]) {
  const context = vm.createContext({ bytes: bytes.slice(), payload: bytes.slice(), port, module: {}, exports: {} });
  const result = vm.runInContext(`${text}\n;JSON.stringify(${CALLS[name]})`, context, { timeout: 100 });
  if (typeof result !== 'string') throw new Error('no result');
}

function time({ text, function: name, rounds, messages }) {
  const times = [];
  for (let round = 0; round <= rounds; round++) {
    const start = process.hrtime.bigint();
    for (const message of messages) run(text, name, message);
    times.push(Number(process.hrtime.bigint() - start) / 1000 / messages.length);
  }
  times.shift();
  times.sort((a, b) => a - b);
  return { best_us: times[0], median_us: times[times.length >> 1] };
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  let reply = null;
  try {
    reply = time(JSON.parse(line));
  } catch (_) {
    // It does not work here; that is the answer.
  }
  process.stdout.write(JSON.stringify(reply) + '\n');
});
