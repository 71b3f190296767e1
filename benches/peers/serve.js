// Measures codecs as the bench `corpus` asks: a line comes in for each, and a line with the times and results goes out.
'use strict';
const readline = require('node:readline');

// The same as in benches/corpus/rounds.rs.
const BATCH_US = 1500;
const TIMES_MAX = 1000;
// By then V8 has compiled what is hot.
const WARM_UP_US = 100_000;

function clock(decoders, times) {
  const start = process.hrtime.bigint();
  for (let time = 0; time < times; time++) for (const decode of decoders) decode();
  return Number(process.hrtime.bigint() - start) / 1000;
}

function measure(decoders, rounds) {
  let once = Infinity;
  for (let spent = 0; spent < WARM_UP_US;) {
    const took = clock(decoders, 1);
    once = Math.min(once, took);
    spent += took;
  }
  const times = Math.min(Math.max(Math.floor(BATCH_US / once), 1), TIMES_MAX);
  const batches = Array.from({ length: rounds }, () => clock(decoders, times) / times / decoders.length);
  batches.sort((a, b) => a - b);
  return { best_us: batches[0], median_us: batches[batches.length >> 1] };
}

// `load` returns a function without parameters for each message of a codec.
function answer(load, line) {
  try {
    const codec = JSON.parse(line);
    const decoders = load(codec);
    const results = decoders.map((decode) => decode());
    if (results.some((result) => typeof result !== 'string')) throw new Error('no result');
    return { ...measure(decoders, codec.rounds), results };
  } catch (error) {
    return { error: String(error) };
  }
}

exports.serve = (load) => {
  console.log(`V8 ${process.versions.v8} in Node.js ${process.versions.node} ${process.execArgv.join(' ')}`.trim());
  readline.createInterface({ input: process.stdin }).on('line', (line) => {
    process.stdout.write(JSON.stringify(answer(load, line)) + '\n');
  });
};
