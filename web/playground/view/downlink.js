// Fields that are encoded, and whether decoding gives them again.

import { leavesOf } from "../byte_map.js";
import { element } from "./element.js";
import { failureView } from "./failure.js";
import { jsonView, logsView, payloadView } from "./result.js";

/** Shows the outcome of an encoder, and of decoding its bytes again: null if nothing decodes downlinks. */
export function showDownlink(container, fields, { encoded, again }, goTo) {
  const parts = encoded.failure === null ? [payloadView(encoded.value)] : [failureView(encoded.failure, goTo)];
  parts.push(...encoded.warnings.map((warning) => element("p", { class: "notice" }, `Warning: ${warning}`)), logsView(encoded.logs));
  if (encoded.failure === null) parts.push(...roundTrip(fields, again, goTo));
  container.replaceChildren(...parts.filter((part) => part !== null));
}

function roundTrip(fields, again, goTo) {
  if (again === null) return [element("p", { class: "hint" }, "Without `decodeDownlink`, nothing decodes these bytes again.")];
  if (again.failure !== null) return [element("h3", {}, "Decoded again"), failureView(again.failure, goTo)];
  const differing = differences(fields, again.value.json);
  const verdict = differing.length === 0 ? "Decoding these bytes gives the same fields." : `Decoding these bytes gives other fields: ${differing.join(", ")}`;
  return [element("p", { class: differing.length === 0 ? "badge good" : "notice" }, verdict), jsonView("Decoded again", again.value.json)];
}

/** The paths in which two JSON texts differ. */
function differences(before, after) {
  const [one, other] = [leavesOf(before), leavesOf(after)];
  const paths = new Set([...one.keys(), ...other.keys()]);
  return [...paths].filter((path) => one.get(path) !== other.get(path)).slice(0, 8);
}
