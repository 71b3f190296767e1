// Runs vectors in the sandbox of the playground, and says what came of each as `vectors.rs` says it of the server's.

/** What each line costs in the first calls of each vector; nothing where its sources cannot be loaded. */
function profiles({ Sandbox, Failure, Profiler }, guest, limits, vectors) {
  const [sandbox, profiler] = [new Sandbox(guest, limits), new Profiler(guest, limits)];
  const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
  return vectors.map(({ sources, profiled }) => {
    try {
      const functions = sandbox.load(sources);
      const profile = (call) => profiler.profile(functions, { ...call, payload: bytes(call.payload) });
      return profiled.map((call) => profile(call) ?? { fuel: 0, outside: 0, lines: [] });
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      return [];
    }
  });
}

/** The outcome of each vector: its sources are loaded, and its calls are run one after the other. */
function outcomes({ Sandbox, Failure }, guest, limits, vectors) {
  const sandbox = new Sandbox(guest, limits);
  const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
  const hex = (list) => Array.from(list, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const failed = (failure) => ({ kind: failure.kind, slot: failure.slot, line: failure.line, column: failure.column, text: failure.text });
  const result = ({ value, failure }) => {
    if (failure !== null) return failed(failure);
    const { kind, ...rest } = value;
    return kind === "bytes" ? { bytes: hex(rest.bytes), port: rest.port } : rest;
  };
  return vectors.map(({ sources, calls }) => {
    let functions;
    try {
      functions = sandbox.load(sources);
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      return { failure: failed(failure), calls: [] };
    }
    const run = (call) => {
      const outcome = sandbox.call(functions, { ...call, payload: bytes(call.payload) });
      return { result: result(outcome), warnings: outcome.warnings, logs: outcome.logs, fuel: outcome.fuel };
    };
    return { dialects: functions.dialects, fuel: functions.loadFuel, calls: calls.map(run) };
  });
}
