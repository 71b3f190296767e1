// The page: what is typed is run at once, and kept in the address.

import { CodeEditor } from "./editor/code_editor.js";
import { fromFragment, toFragment } from "./link.js";
import { MESSAGES_MAX, readMessages } from "./messages.js";
import { base64Of, hexOf, timeOf } from "./payload.js";
import { Runner } from "./runner.js";
import { SAMPLE } from "./sample.js";
import { CostsView } from "./view/costs.js";
import { showDownlink } from "./view/downlink.js";
import { element, grouped, inBytes, shown } from "./view/element.js";
import { ExamplesView, save } from "./view/examples.js";
import { failureView } from "./view/failure.js";
import { FolderView } from "./view/folder.js";
import { FuzzView } from "./view/fuzz.js";
import { NetworksView } from "./view/networks.js";
import { ResultView } from "./view/result.js";
import { RowsView } from "./view/rows.js";

/** The pause in typing after which the address changes, in milliseconds: browsers limit how often it may. */
const LINK_DELAY_MS = 500;
const SEED = 1;
const FIELDS = ["dialect", "port", "notation", "time", "payloads", "fields"];
const NAMES = { v2: "The Things Network 2", ts013: "TS013", chirpstack3: "ChirpStack 3" };

const by = (id) => document.getElementById(id);
const [limits, guest] = await Promise.all([get("limits.json", "json"), get("guest.wasm", "arrayBuffer")]);
const editor = new CodeEditor(by("text"), () => changed());
const goTo = (line, column) => editor.goTo(line, column);
const result = new ResultView(by("outcome"), by("verdict"), limits, goTo);
const costs = new CostsView(editor, by("editor"), by("cost"), by("costs"));
const rows = new RowsView(by("rows"), (place) => select(place));
const runner = new Runner(new Uint8Array(guest), limits, (report) => hear(report));
const sandbox = { guest: new Uint8Array(guest), limits };
const folder = new FolderView(by("folder-details"), sandbox, {
  codec: () => ({ sources: sources(), messages: readable() }),
  goTo,
  open: (codec, isKept) => show(codec, isKept),
});
new ExamplesView(by("examples-details"), sandbox, {
  codec: () => ({ sources: sources(), messages: readable(), downlink: downlink(), script: script() }),
  keep: (file, content, codec) => folder.keep(file, content, codec),
});
const fuzz = new FuzzView(by("fuzz-details"), sandbox, {
  codec: () => ({ sources: sources(), messages: begun() }),
  goTo,
  add: (payload, port) => addPayload(payload, port),
});
const networks = new NetworksView(by("networks-details"), sandbox, {
  codec: () => ({ sources: sources(), messages }),
  goTo,
  remark: (remarks) => editor.remark(remarks.map((one) => ({ ...one, message: shown(one.message) }))),
  use: (text) => replaceText(text),
  chose: () => linkLater(),
});
/** The messages of the last request, and which of them is shown. */
let [messages, selected] = [[], 0];
/** The places of messages of which nothing is known yet. */
let pending = new Set();
let name = "codec.js";
let linkTimer = null;

await start();

async function get(path, what) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response[what]();
}

async function start() {
  restore((await linked()) ?? (await opened()) ?? SAMPLE);
  for (const id of FIELDS) by(id).addEventListener("input", () => changed());
  by("downlink-details").addEventListener("toggle", () => changed());
  by("share").onclick = share;
  by("open").onclick = () => by("file").click();
  by("file").onchange = openFile;
  by("save").onclick = saveFile;
  addEventListener("hashchange", async () => {
    const state = await linked();
    if (state === null) return;
    folder.leave();
    restore(state);
  });
}

/** What the link carries; null if it carries nothing. */
async function linked() {
  const state = await fromFragment(location.hash);
  if (state === null && location.hash.length > 1) announce("This link cannot be read: a part of it may be missing.");
  return state;
}

/** What `airlock playground FILE` opens; null for nothing. */
async function opened() {
  const file = await get("opened.json", "json").catch(() => null);
  if (file === null) return null;
  return stateOf(file);
}

/** The state with a codec and the messages of its examples. */
function stateOf(codec) {
  name = codec.name;
  const payloads = codec.uplinks.map(({ port, payload }) => `${port}: ${payload}`).join("\n");
  return { text: codec.text, dialect: codec.dialect ?? "", payloads, fields: codec.fields === null ? "" : JSON.stringify(codec.fields) };
}

/** Shows a codec of a folder. Unless a file keeps what is in the editor, a step back in the browser leads to it. */
function show(codec, isKept) {
  if (!isKept) history.pushState(null, "", location.href);
  restore(stateOf(codec), (text) => editor.open(text));
}

function restore(state, put = (text) => (editor.text = text)) {
  for (const id of FIELDS) by(id).value = typeof state[id] === "string" ? state[id] : by(id).defaultValue ?? "";
  put(typeof state.text === "string" ? state.text : "");
  selected = Number.isInteger(state.selected) ? state.selected : 0;
  by("downlink-details").open = by("fields").value !== "";
  if (typeof state.network === "string") networks.open(state.network);
  changed();
}

function changed() {
  run();
  folder.changed();
  fuzz.changed();
  networks.changed();
  linkLater();
}

function linkLater() {
  clearTimeout(linkTimer);
  linkTimer = setTimeout(keepLink, LINK_DELAY_MS);
}

/** Runs everything. */
function run() {
  const { port, timeMs, problem } = readSettings();
  messages = readMessages(by("payloads").value, { port, timeMs, notation: by("notation").value });
  selected = Math.max(0, Math.min(selected, messages.length - 1));
  tell("payload-problem", "payloads", problem ?? problemOf(messages));
  rows.show(messages, selected);
  if (messages.length === 0) result.clear("Type a payload to see what the codec makes of it.");
  else if (messages[selected].problem !== undefined) result.clear(`Line ${messages[selected].line}: ${messages[selected].problem}`);
  pending = new Set(messages.keys());
  ask(pending);
}

/** Shows another message. */
function select(place) {
  selected = place;
  if (messages[place].problem !== undefined) result.clear(`Line ${messages[place].line}: ${messages[place].problem}`);
  ask(new Set([place, ...pending]));
}

function ask(places) {
  const now = Date.now();
  const calls = [...places].filter((place) => messages[place].problem === undefined).map((place) => {
    const { payload, port, timeMs } = messages[place];
    return { place, call: { entryPoint: "uplink", port, timeMs: timeMs ?? now, seed: SEED, payload, extra: "" } };
  });
  by("result").classList.add("busy");
  document.documentElement.removeAttribute("data-ready");
  costs.wait();
  runner.ask({ sources: sources(), calls, measured: selected, downlink: downlinkCall(now) });
}

function sources() {
  return { text: editor.text, dialect: by("dialect").value || null };
}

function readSettings() {
  const [port, time] = [by("port").value.trim(), by("time").value.trim()];
  const isPort = /^\d{1,3}$/.test(port) && Number(port) <= 255;
  const timeMs = timeOf(time);
  const problems = [
    isPort ? null : "A port is a number from 0 to 255.",
    time === "" || timeMs !== null ? null : "A time has a date, a time and a zone, as in 2026-01-01T00:00:00Z.",
  ];
  return { port: isPort ? Number(port) : 0, timeMs, problem: problems.find((problem) => problem !== null) ?? null };
}

/** The call that encodes the fields; null if there is nothing to encode. */
function downlinkCall(now) {
  const fields = by("fields").value;
  tell("fields-problem", "fields", null);
  if (fields.trim() === "" || !by("downlink-details").open) return null;
  try {
    const isObject = typeof JSON.parse(fields) === "object";
    if (!isObject) throw new Error("expected an object");
  } catch (error) {
    tell("fields-problem", "fields", `These fields are no JSON object: ${error.message}`);
    return null;
  }
  const { port, timeMs } = readSettings();
  return { entryPoint: "encodeDownlink", port, timeMs: timeMs ?? now, seed: SEED, payload: new TextEncoder().encode(fields), extra: "" };
}

function problemOf(all) {
  if (all.length === MESSAGES_MAX) return `Only the first ${grouped(MESSAGES_MAX)} messages are run.`;
  const wrong = all.find(({ problem }) => problem !== undefined);
  return wrong === undefined ? null : `Line ${wrong.line}: ${wrong.problem}`;
}

function tell(id, field, problem) {
  by(id).hidden = problem === null;
  by(id).textContent = shown(problem ?? "");
  by(field).setAttribute("aria-invalid", String(problem !== null));
}

/** Hears what the worker reports of the newest request. */
function hear(report) {
  switch (report.kind) {
    case "loaded":
      return showLoaded(report);
    case "outcomes":
      rows.add(report.outcomes);
      report.outcomes.forEach(({ place }) => pending.delete(place));
      return report.outcomes.filter(({ place }) => place === selected).forEach(({ outcome }) => showOutcome(outcome));
    case "encoded":
      return showDownlink(by("encoded"), by("fields").value, report, goTo);
    case "map":
      return report.place === selected ? result.showMap(report.bytes, report.isComplete) : undefined;
    case "profile":
      return report.place === selected ? costs.show(report.profile) : undefined;
    case "done":
      costs.settle();
      return document.documentElement.setAttribute("data-ready", "");
    default:
      return result.clear(`The sandbox stopped: ${report.reason}`);
  }
}

function showLoaded({ loaded, failure }) {
  if (failure) {
    mark(failure);
    by("loaded").replaceChildren(failureView(failure, goTo));
    by("encoded").replaceChildren();
    rows.forget();
    costs.show(null);
    if (messages.length > 0) result.clear("The codec cannot be loaded.");
    by("result").classList.remove("busy");
    return;
  }
  editor.mark(null);
  const slots = ["decoder", "converter", "validator", "encoder"];
  const found = slots.flatMap((slot, index) => (loaded.dialects[index] === null ? [] : [`${slot} (${NAMES[loaded.dialects[index]]})`]));
  const cost = `Loading takes ${grouped(loaded.loadFuel)} of ${grouped(limits.load_fuel)} fuel, and keeps ${inBytes(loaded.keptBytes)} of ${inBytes(limits.kept_bytes_max)}.`;
  by("loaded").replaceChildren(element("p", { class: "hint" }, `Defines ${found.join(", ")}. ${cost}`));
}

/** Marks the line of a failure; null, and one of which no line is known, mark none. */
function mark(failure) {
  editor.mark(failure === null || failure.line === null ? null : { line: failure.line, message: shown(failure.message) });
}

function showOutcome(outcome) {
  by("result").classList.remove("busy");
  mark(outcome.failure);
  result.show(messages[selected], outcome);
}

function state() {
  const state = { text: editor.text, selected };
  for (const id of FIELDS) if (by(id).value !== "") state[id] = by(id).value;
  if (networks.chosen !== null) state.network = networks.chosen;
  return state;
}

async function keepLink() {
  const fragment = await toFragment(state());
  history.replaceState(null, "", `#${fragment}`);
}

async function share() {
  await keepLink();
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  announce(copied ? `Copied a link of ${grouped(location.href.length)} characters.` : "The link is in the address bar.");
}

async function openFile() {
  const [file] = by("file").files;
  if (file === undefined) return;
  by("file").value = "";
  if (file.size > limits.source_bytes_max) return announce(`${file.name} is larger than a codec may be.`);
  const text = await file.text().catch(() => null);
  if (text === null) return announce(`${file.name} cannot be read: it has changed on disk, or is gone. Open it again.`);
  name = file.name;
  folder.leave();
  editor.text = text;
  changed();
  return announce(`Opened ${file.name}.`);
}

/** The name of the codec's file, without what browsers would replace in one. */
function script() {
  const file = name.split("/").pop().replace(/[\\:*?"<>|]/g, "_") || "codec";
  return /\.(?:[cm]?js|txt)$/.test(file) ? file : `${file}.js`;
}

function saveFile() {
  save(script(), editor.text, "text/javascript");
}

function readable() {
  return messages.filter(({ problem }) => problem === undefined);
}

/** The fields that are encoded, and the port; null if there are none. */
function downlink() {
  const call = downlinkCall(Date.now());
  return call === null ? null : { fields: by("fields").value, port: call.port };
}

/** The messages that random payloads begin with: those that can be read, or an empty one. */
function begun() {
  const now = Date.now();
  const first = readable().length > 0 ? readable() : [{ line: 1, payload: new Uint8Array(), port: readSettings().port, timeMs: null }];
  return first.map(({ line, payload, port, timeMs }) => ({ line, payload, port, timeMs: timeMs ?? now }));
}

/** Adds a payload to those that are typed, in their notation, and shows it. */
function addPayload(payload, port) {
  const line = `${port}: ${by("notation").value === "base64" ? base64Of(payload) : hexOf(payload)}`;
  const typed = by("payloads").value.trim();
  // One message may go over several lines only as long as it is alone.
  const before = messages.length === 1 ? typed.replace(/\s*\n\s*/g, " ") : typed;
  by("payloads").value = before === "" ? line : `${before}\n${line}`;
  selected = Infinity;
  changed();
  announce("Added to the payloads, and selected.");
}

function replaceText(text) {
  editor.text = text;
  changed();
  announce("The codec has the text that was ported.");
}

function announce(text) {
  by("said").classList.remove("unseen");
  by("said").textContent = shown(text);
}
