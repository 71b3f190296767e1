// Writes examples in the layouts that `airlock functions test` reads (`workbench/src/layout`).
//
// JSON is also YAML, so values are written as JSON in both.

import { hexOf } from "../payload.js";

/** The layouts, by their names in the page. */
export const LAYOUTS = {
  own: { title: "Airlock", write: own },
  repository: { title: "The Things Network's device repository", write: repository },
  profile: { title: "ChirpStack's device profiles", write: profile },
  package: { title: "TS013 package", write: packaged },
  milesight: { title: "Milesight", write: milesight },
};

/** The port that Milesight's devices send on, and the only one of that layout. */
const MILESIGHT_PORT = 85;

/**
 * The file of a layout: its `file`, its `content`, the `script` beside it, and how many examples it has and leaves out.
 * `script` is the name of the codec's file; `dialect` is the one that was selected, or null.
 */
export function writeExamples(layout, { script, dialect, examples }) {
  return LAYOUTS[layout].write(script.replace(/\.\w+$/, "") || "codec", examples, { script, dialect });
}

function own(stem, { dialects, uplinks, downlink }, { script, dialect }) {
  const lines = ["examples:"];
  if (script !== `${stem}.js`) lines.unshift(`script: ${JSON.stringify(script)}`);
  if (dialect !== null) lines.unshift(`dialect: ${dialect}`);
  const isStated = ({ output, outcome }) => (output === null ? outcome !== null : isYaml(output));
  const end = ({ output, outcome }) => (output === null ? `    outcome: ${outcome}` : `    output: ${oneLine(output)}`);
  for (const uplink of uplinks.filter(isStated)) {
    lines.push(`  - description: ${JSON.stringify(nameOf(uplink))}`, `    port: ${uplink.port}`, `    bytes: ${JSON.stringify(hexOf(uplink.payload))}`);
    if (uplink.timeMs !== null) lines.push(`    time: ${JSON.stringify(new Date(uplink.timeMs).toISOString())}`);
    lines.push(end(uplink));
  }
  const encoded = downlink !== null && isStated(downlink) && isYaml(downlink.fields) ? [downlink] : [];
  for (const one of encoded) {
    const input = dialects.encoder === "ts013" ? `{"data": ${one.fields}}` : one.fields;
    lines.push("  - function: downlink-encode", `    port: ${one.port}`, `    input: ${oneLine(input)}`, end(one));
  }
  const count = uplinks.filter(isStated).length + encoded.length;
  return made(`${stem}.test.yaml`, `${lines.join("\n")}\n`, script, count, uplinks.length + (downlink === null ? 0 : 1));
}

function repository(stem, examples, { script }) {
  const [found, all] = wrapped(examples);
  const list = found.filter(({ output }) => isYaml(output));
  const lines = ["uplinkDecoder:", `  fileName: ${JSON.stringify(script)}`, "  examples:"];
  for (const { name, input, output } of list) lines.push(`    - description: ${JSON.stringify(name)}`, `      input: ${oneLine(input)}`, `      output: ${oneLine(output)}`);
  return made(`${stem}-codec.yaml`, `${lines.join("\n")}\n`, script, list.length, all);
}

function profile(stem, examples) {
  const [list, all] = wrapped(examples);
  const items = list.map(({ name, input, output }) => `  {"name": ${JSON.stringify(name)}, "input": ${input}, "expected": ${oneLine(output)}}`);
  return made(`test_decode_${stem}.json`, `[\n${items.join(",\n")}\n]\n`, `${stem}.js`, list.length, all);
}

function packaged(stem, examples) {
  const [list, all] = wrapped(examples);
  const items = list.map(({ name, input, output }) => `  {"type": "uplink", "description": ${JSON.stringify(name)}, "input": ${input}, "output": ${oneLine(output)}}`);
  return made(`${stem}.examples.json`, `[\n${items.join(",\n")}\n]\n`, `${stem}.js`, list.length, all);
}

/** One payload, and the names of the fields that are found in it. */
function milesight(stem, { dialects, uplinks }) {
  const fieldsOf = ({ output }) => {
    const value = JSON.parse(output);
    // Members of `data` count in all dialects, and only objects have any.
    const fields = value?.data ?? (dialects.decoder === "ts013" ? null : value);
    return typeof fields === "object" && !Array.isArray(fields) ? Object.keys(fields ?? {}) : [];
  };
  // A list of fields has `.`, `[` and `_item` for parts of one.
  const areNames = (fields) => fields.length > 0 && !fields.some((name) => /[.[]|_item$/.test(name));
  const found = uplinks.find((uplink) => uplink.port === MILESIGHT_PORT && uplink.output !== null && areNames(fieldsOf(uplink)));
  const object = found === undefined ? [] : fieldsOf(found).map((id) => ({ id, name: id, value: "", access_mode: "R" }));
  const content = { version: "1.0.0", bytes: hexOf(found?.payload ?? []), object };
  const device = stem.replace(/-decoder$/, "");
  return made(`${device}-codec.json`, `${JSON.stringify(content, null, 2)}\n`, `${device}-decoder.js`, found === undefined ? 0 : 1, uplinks.length);
}

/** Uplinks with values of TS013, as most layouts have them, and how many examples there were. */
function wrapped({ dialects, uplinks, downlink }) {
  const isTs013 = dialects.decoder === "ts013";
  const list = uplinks.filter(({ output, timeMs }) => output !== null && timeMs === null).map((uplink) => ({
    name: nameOf(uplink),
    input: `{"fPort": ${uplink.port}, "bytes": [${uplink.payload.join(", ")}]}`,
    output: isTs013 ? uplink.output : `{"data": ${uplink.output}}`,
  }));
  return [list, uplinks.length + (downlink === null ? 0 : 1)];
}

function made(file, content, script, count, all) {
  return { file, content, script, count, left: all - count };
}

function nameOf({ payload, port }) {
  return `${payload.length === 0 ? "no bytes" : hexOf(payload)} on port ${port}`;
}

/** JSON on one line, with blanks where YAML may want them. */
function oneLine(json) {
  return JSON.stringify(JSON.parse(json), null, 1).replace(/\n\s*/g, " ");
}

/** True if JSON is YAML as well: there is no half of a surrogate pair, and `<<` is no name of a member. */
function isYaml(json) {
  const line = oneLine(json).replaceAll("\\\\", "");
  return !/\\ud[89a-f]/.test(line) && !line.includes('"<<":');
}
