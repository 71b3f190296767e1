// Runs the sandbox beside the page, so that typing never waits for it. The newest request counts: what is under way for
// an older one ends at the next message.

import { ByteMap } from "./byte_map.js";
import { Profiler } from "./profile/profiler.js";
import { Failure, Sandbox } from "./sandbox/sandbox.js";

/** After this time the page hears of messages that have run, and new requests are looked for, in milliseconds. */
const SLICE_MS = 12;
/** After this time no more bytes are mapped, in milliseconds. */
const MAP_MS_MAX = 5000;

let sandbox = null;
/** What the profiler is made of, once it is needed. */
let given = null;
let profiler = null;
/** The newest request that nobody has begun. */
let newest = null;
let isRunning = false;
/** The functions that were loaded last, and the sources that they are from. */
let [functions, key] = [null, null];

onmessage = async ({ data }) => {
  if (data.guest !== undefined) {
    given = data;
    sandbox = new Sandbox(data.guest, data.limits);
    return;
  }
  newest = data;
  if (isRunning) return;
  isRunning = true;
  while (newest !== null) {
    const request = newest;
    newest = null;
    await answer(request).catch((error) => postMessage({ id: request.id, kind: "broken", reason: String(error) }));
  }
  isRunning = false;
};

/** Answers a request; ends early when there is a newer one. */
async function answer({ id, sources, calls, measured, downlink }) {
  const say = (report) => postMessage({ id, ...report });
  if (!load(sources, say)) return say({ kind: "done" });
  const outcomes = await runAll(calls, measured, say);
  if (newest !== null) return undefined;
  if (downlink !== null) say({ kind: "encoded", ...encode(downlink) });
  const index = calls.findIndex(({ place }) => place === measured);
  if (index >= 0) {
    await profile(calls[index], say);
    if (newest === null) await map(calls[index], outcomes[index], say);
  }
  return newest === null ? say({ kind: "done" }) : undefined;
}

function load(sources, say) {
  const wanted = JSON.stringify(sources);
  try {
    if (wanted !== key) [functions, key] = [null, null];
    functions ??= sandbox.load(sources);
    key = wanted;
    const { dialects, loadFuel, keptBytes } = functions;
    say({ kind: "loaded", loaded: { dialects, loadFuel, keptBytes } });
    return true;
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    say({ kind: "loaded", failure: plain(failure) });
    return false;
  }
}

/** Runs calls, the measured one first, and reports a slice of them at a time. */
async function runAll(calls, measured, say) {
  const order = [...calls.keys()].sort((one, other) => (calls[other].place === measured) - (calls[one].place === measured));
  const outcomes = [];
  let [slice, began] = [[], performance.now()];
  for (const index of order) {
    const { place, call } = calls[index];
    const isMeasured = place === measured;
    outcomes[index] = sandbox.call(functions, call, isMeasured);
    slice.push({ place, outcome: described(outcomes[index]) });
    if (!isMeasured && performance.now() - began < SLICE_MS) continue;
    say({ kind: "outcomes", outcomes: slice });
    await rest();
    if (newest !== null) return outcomes;
    [slice, began] = [[], performance.now()];
  }
  if (slice.length > 0) say({ kind: "outcomes", outcomes: slice });
  return outcomes;
}

/** The bytes of a downlink, and what `decodeDownlink` makes of them. */
function encode(call) {
  const outcome = sandbox.call(functions, call);
  if (outcome.value === null || functions.dialect("encoder") !== "ts013") return { encoded: described(outcome), again: null };
  const { bytes, port } = outcome.value;
  const back = { ...call, entryPoint: "decodeDownlink", payload: bytes, port: port ?? call.port };
  return { encoded: described(outcome), again: described(sandbox.call(functions, back)) };
}

/** Says what each line of the source cost, once the page has the result. */
async function profile({ place, call }, say) {
  await rest();
  if (newest !== null) return;
  profiler ??= new Profiler(given.guest, given.limits);
  say({ kind: "profile", place, profile: profiler.profile(functions, call) });
  await rest();
}

async function map({ place, call }, outcome, say) {
  if (outcome.value?.json === undefined || !outcome.value.json.startsWith("{")) return;
  const run = (payload) => sandbox.call(functions, { ...call, payload });
  const map = new ByteMap(call.payload, outcome, run);
  const start = performance.now();
  let began = start;
  let isComplete = true;
  for (const _ of map.steps()) {
    if (performance.now() - began < SLICE_MS) continue;
    await rest();
    if (newest !== null) return;
    began = performance.now();
    isComplete = began - start < MAP_MS_MAX;
    if (!isComplete) break;
  }
  say({ kind: "map", place, bytes: map.bytes, isComplete });
}

/** An outcome that can be sent to the page. */
function described(outcome) {
  return { ...outcome, failure: outcome.failure === null ? null : plain(outcome.failure) };
}

function plain({ slot, kind, message, line, column, text }) {
  return { slot, kind, message, line, column, text };
}

/** Lets a newer request in. */
function rest() {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
