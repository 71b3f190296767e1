// What came of the examples of a codec: how many pass, and what differs in those that fail.

import { counted, element, grouped } from "./element.js";

/** More of a kind are counted, but not listed. */
const LISTED_MAX = 200;
/** The outcomes, in the order of the page, and what they are called. */
const KINDS = { failed: "failed", shown: "expect nothing", excluded: "not run", passed: "passed" };

/** How many examples have come to what, in words. */
export function totals({ failure, examples }) {
  if (failure !== null) return "The codec cannot be loaded.";
  if (examples.length === 0) return "The codec has no examples.";
  const counts = Object.keys(KINDS).map((kind) => [kind, examples.filter(({ outcome }) => outcome === kind).length]);
  const told = counts.filter(([kind, count]) => count > 0 || kind === "passed").map(([kind, count]) => `${grouped(count)} ${KINDS[kind]}`);
  return `${counted(examples.length, "example")}: ${told.reverse().join(", ")}.`;
}

/** The examples of a report. `goTo` shows a line of the source, and `find` one of a file with examples. */
export function testedView({ failure, examples }, goTo, find) {
  const cannotLoad = failure === null ? [] : [element("div", { class: "problem" }, element("pre", {}, failure))];
  return [...cannotLoad, ...Object.keys(KINDS).flatMap((kind) => listOf(kind, examples.filter(({ outcome }) => outcome === kind), goTo, find))];
}

function listOf(kind, examples, goTo, find) {
  if (examples.length === 0) return [];
  const items = examples.slice(0, LISTED_MAX).map((example) => item(example, goTo, find));
  const more = examples.length > LISTED_MAX ? [element("li", { class: "hint" }, `and ${grouped(examples.length - LISTED_MAX)} more`)] : [];
  const list = element("ul", { class: "tested" }, ...items, ...more);
  if (kind === "failed" || kind === "shown") return [list];
  return [element("details", {}, element("summary", {}, `${grouped(examples.length)} ${KINDS[kind]}`), list)];
}

function item({ title, call, outcome, lines, line, file, at, fuel }, goTo, find) {
  const place = file === null ? null : element("button", { type: "button", class: "link", onclick: () => find(file, at) }, `${file.split("/").pop()}, line ${at}`);
  const source = line === null ? null : element("button", { type: "button", class: "link", onclick: () => goTo(line, 1) }, `Line ${line} of the codec`);
  const cost = fuel === 0 ? "" : `, ${grouped(fuel)} fuel`;
  return element(
    "li",
    { class: outcome },
    element("p", {}, element("strong", {}, `${title}: ${KINDS[outcome]}`), " ", place, " ", source),
    element("p", { class: "hint" }, `${call}${cost}`),
    lines.length === 0 ? null : element("pre", {}, lines.join("\n")),
  );
}

/** Files and lines that cannot be read, or not as meant. */
export function problemsView(problems) {
  const said = problems.slice(0, LISTED_MAX).map(({ file, line, reason }) => element("li", {}, file === null ? reason : `${file}, line ${line}: ${reason}`));
  const more = problems.length - said.length;
  if (more > 0) said.push(element("li", {}, `and ${grouped(more)} more`));
  return said.length === 0 ? [] : [element("ul", { class: "findings" }, ...said)];
}
