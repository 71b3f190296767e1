// Asks the server that serves this page what it makes of a codec. `cli/commands/playground/networks.rs` answers.

import { hexOf } from "../payload.js";

/** More uplinks are not sent: each runs once for every network. */
const UPLINKS_MAX = 8;

/** The networks that this server judges for; null where there is no such server, as in the console and on a site of files. */
export async function networks() {
  const response = await fetch("networks.json").catch(() => null);
  return response?.ok ? response.json().catch(() => null) : null;
}

/** What is sent of a codec and its messages. */
export function submitted({ text, dialect }, messages) {
  const readable = messages.filter(({ problem }) => problem === undefined).slice(0, UPLINKS_MAX);
  const now = Date.now();
  const uplinks = readable.map(({ line, port, payload, timeMs }) => ({ line, port, payload: hexOf(payload), timeMs: timeMs ?? now }));
  return { text, dialect, uplinks };
}

/** The verdicts on a codec, one for each network; throws an error that says what is wrong. */
export async function lint(codec) {
  return (await post("lint", codec)).verdicts;
}

/** The codec as a network takes it, and the proof. */
export function port(codec, target) {
  return post("port", { codec, target });
}

async function post(path, body) {
  const response = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  if (response.ok) return response.json();
  const text = await response.text();
  throw new Error(reasonIn(text) ?? (text || `the server answered ${response.status}`));
}

function reasonIn(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return undefined;
  }
}
