// Runs functions in contexts of Node's `vm`, and prints how long each message took. Reads its task from standard input.
"use strict";
const vm = require("node:vm");
const task = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

// Contexts that are made anew take long, so they are fewer; and no engine may take forever.
const FRESH_MAX = 200;
const WARM_UP_MAX = 50;
const MILLISECONDS_MAX = 3000;

function context() {
  const nothing = () => {};
  const console = { log: nothing, info: nothing, warn: nothing, error: nothing, debug: nothing, trace: nothing };
  const module = { exports: {} };
  const require = (name) => {
    if (name !== "buffer") throw new Error(`there is no module ${name}`);
    return { Buffer };
  };
  const globals = { console, module, exports: module.exports, require, Buffer, atob, btoa, TextEncoder, TextDecoder };
  return vm.createContext(globals);
}

function load(message) {
  const sandbox = context();
  vm.runInContext(task.script, sandbox, { timeout: MILLISECONDS_MAX });
  const name = message.name;
  return vm.runInContext(`typeof ${name} === "function" ? ${name} : module.exports.${name}`, sandbox);
}

// The arguments, from text to objects each time, as a server would make them.
function call(run, message) {
  const extra = JSON.parse(message.extra);
  const isDecoder = message.bytes !== null;
  const payload = isDecoder ? Array.from(Buffer.from(message.bytes, "hex")) : JSON.parse(message.json);
  let result;
  if (message.dialect === "ts013") {
    const input = isDecoder ? { bytes: payload, fPort: message.port } : { data: payload };
    result = run({ ...input, recvTime: new Date(message.time), ...extra });
  } else if (message.dialect === "v2") {
    result = run(payload, message.port);
  } else {
    result = run(message.port, payload, extra.variables);
  }
  return JSON.stringify(result);
}

function times(count, body) {
  const taken = [];
  const end = performance.now() + MILLISECONDS_MAX;
  for (let index = 0; index < count && performance.now() < end; index++) {
    const start = process.hrtime.bigint();
    body();
    taken.push(Number(process.hrtime.bigint() - start) / 1e3);
  }
  return taken;
}

function measure(message) {
  try {
    const run = load(message);
    if (typeof run !== "function") throw new Error(`it defines no ${message.name}`);
    times(Math.min(task.count, WARM_UP_MAX), () => call(run, message));
    const warm = times(task.count, () => call(run, message));
    const fresh = times(Math.min(task.count, FRESH_MAX), () => call(load(message), message));
    return { warm, fresh };
  } catch (error) {
    return { failure: String(error).slice(0, 500) };
  }
}

process.stdout.write(JSON.stringify(task.messages.map(measure)));
