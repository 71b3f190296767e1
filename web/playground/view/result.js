// What came of one message.

import { leavesOf } from "../byte_map.js";
import { hexOf } from "../payload.js";
import { BytesView } from "./bytes.js";
import { element, grouped, inBytes, meter, shown } from "./element.js";
import { failureView } from "./failure.js";

/** The outcome of one uplink, and of its bytes. */
export class ResultView {
  #container;
  #verdict;
  #limits;
  #goTo;
  #bytes = null;

  constructor(container, verdict, limits, goTo) {
    [this.#container, this.#verdict, this.#limits, this.#goTo] = [container, verdict, limits, goTo];
  }

  /** Shows an outcome; `message` is what it came from. */
  show(message, outcome) {
    const { value, failure, warnings } = outcome;
    const json = value?.json ?? null;
    this.#bytes = new BytesView(message.payload, json?.startsWith("{") ? leavesOf(json) : new Map());
    this.#say(failure !== null ? "Failed" : value.valid === false ? "Not valid: it would not be published" : "Decoded", failure === null && value.valid !== false);
    this.#container.replaceChildren(
      ...[
        message.payload.length > 0 ? this.#bytes.bytesElement : null,
        failure === null ? null : failureView(failure, this.#goTo),
        ...warnings.map((warning) => element("p", { class: "notice" }, `Warning: ${warning}`)),
        json === null ? null : this.#bytes.fieldsElement,
        json === null ? null : jsonView("JSON", json),
        value?.normalized ? jsonView("Normalized", value.normalized) : null,
        logsView(outcome.logs),
        this.#cost(outcome),
      ].filter((part) => part !== null),
    );
  }

  /** Shows where the fields came from. */
  showMap(bytes, isComplete) {
    this.#bytes?.show(bytes, isComplete);
  }

  /** Shows that there is nothing to show, and why. */
  clear(reason) {
    this.#bytes = null;
    this.#say("", true);
    this.#container.replaceChildren(element("p", { class: "empty" }, reason));
  }

  #say(text, isGood) {
    this.#verdict.className = text === "" ? "" : `badge ${isGood ? "good" : "bad"}`;
    this.#verdict.textContent = text;
  }

  #cost({ fuel, memory, milliseconds }) {
    const limits = this.#limits;
    const meters = [meter("Fuel", fuel, limits.fuel, `${grouped(fuel)} of ${grouped(limits.fuel)}`)];
    if (memory) {
      const text = `${inBytes(memory.bytes)} of ${inBytes(limits.memory_bytes_max)}, ${inBytes(memory.changedBytes)} written`;
      meters.push(meter("Memory", memory.bytes, limits.memory_bytes_max, text));
    }
    const time = element("div", {}, element("span", {}, `Time here ${milliseconds.toFixed(1)} ms`));
    return element("div", { class: "meters" }, ...meters, time);
  }
}

/** JSON on several lines, which can be folded away. */
export function jsonView(title, json) {
  const pretty = JSON.stringify(JSON.parse(json), null, 2);
  return element("details", { open: title !== "JSON" }, element("summary", {}, title), element("pre", {}, pretty));
}

export function logsView(logs) {
  if (logs.length === 0) return null;
  const lines = logs.map(({ slot, level, fields }) => element("li", { class: level }, `${slot} ${level}: ${fields.join(" ")}`));
  return element("div", {}, element("h3", {}, "Logs"), element("ul", { class: "logs" }, ...lines));
}

/** The bytes that an encoder returned. */
export function payloadView({ bytes, port }) {
  const text = bytes.length === 0 ? "no bytes" : hexOf(bytes);
  return element("pre", {}, port === null ? text : shown(`${text} on port ${port}`));
}
