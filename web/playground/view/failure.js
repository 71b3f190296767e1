// What failed, with a way to its line.

import { element } from "./element.js";

/** A failure of a codec; `goTo` moves to a line and column of its source. */
export function failureView(failure, goTo) {
  const { line, column } = failure;
  const link = line === null ? null : element("button", { type: "button", onclick: () => goTo(line, column) }, `Go to line ${line}`);
  return element("div", { class: "problem" }, element("p", {}, sentence(failure.text)), link);
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
