// Examples of what a codec returns, as `airlock functions test` runs them: one function alone, with its whole value.

/** The time that functions see in examples which have none: the start of 2026 (`workbench/src/codec.rs`). */
const DEFAULT_TIME_MS = 1_767_225_600_000;
const SEED = 1;
/** A codec has no more examples than these (`workbench/src/codec.rs`). */
export const EXAMPLES_MAX = 1024;

/**
 * Runs messages, each with `payload`, `port` and `timeMs`, and fields for the encoder, or null. Each example has `input`,
 * and the `output` as JSON or the `outcome` in place of one; `cut` is how many messages are too many. `progress` is called
 * before each. Throws a `Failure` if the sources cannot be loaded.
 */
export function examplesOf(sandbox, sources, messages, downlink, progress = () => {}) {
  const functions = sandbox.load(sources);
  const run = (call) => stated(sandbox.call(functions, { entryPoint: "singleFunction", seed: SEED, extra: "", ...call }));
  const uplinks = messages.slice(0, EXAMPLES_MAX - 1).map(({ payload, port, timeMs }) => {
    progress();
    const call = { singleFunction: "uplink", payload, port, timeMs: timeMs ?? DEFAULT_TIME_MS };
    return { payload: [...payload], port, timeMs, ...run(call) };
  });
  const encode = ({ fields, port }) => {
    const payload = new TextEncoder().encode(fields);
    return { fields, port, ...run({ singleFunction: "downlink-encode", payload, port, timeMs: DEFAULT_TIME_MS }) };
  };
  const dialects = { decoder: functions.dialect("decoder"), encoder: functions.dialect("encoder") };
  const cut = messages.length - uplinks.length;
  return { dialects, uplinks, cut, downlink: downlink === null || dialects.encoder === null ? null : encode(downlink) };
}

/** What an example states: the value that was returned, or how the call ended. */
function stated({ value, failure }) {
  if (failure !== null) return { output: null, outcome: { thrown: "throws", stack: "throws", fuel: "timeout" }[failure.kind] ?? null };
  return value.json === null ? { output: null, outcome: "undefined" } : { output: value.json, outcome: null };
}
