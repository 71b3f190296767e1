// Everything that was typed, in the fragment of the address: compressed, so that a bug report can carry it. Browsers send
// no fragment to a server.

import { base64Of } from "./payload.js";

const VERSION = "1.";
/** The largest state that a link may unpack to: a source of the largest size, and its payloads. */
const STATE_BYTES_MAX = 2 << 20;

/** The fragment that stands for a state, which is any JSON. */
export async function toFragment(state) {
  const bytes = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return VERSION + toText(new Uint8Array(await new Response(bytes).arrayBuffer()));
}

/** The state of a fragment; null if it has none, or none that can be read. */
export async function fromFragment(fragment) {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(VERSION)) return null;
  try {
    const state = JSON.parse(await unpack(toBytes(text.slice(VERSION.length))));
    return typeof state === "object" ? state : null;
  } catch {
    return null;
  }
}

/** Unpacks a text, and stops when it becomes too long. */
async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const decoder = new TextDecoder();
  let [text, length] = ["", 0];
  for (const reader = stream.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    length += value.length;
    if (length > STATE_BYTES_MAX) throw new Error("the link is too long");
    text += decoder.decode(value, { stream: true });
  }
}

/** Base64 in the alphabet of addresses. */
function toText(bytes) {
  return base64Of(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function toBytes(text) {
  return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (character) => character.charCodeAt(0));
}
