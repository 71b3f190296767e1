// What each line of the source cost in fuel: an amount and a bar beside its number, and the exact amount in words.

import { element, grouped } from "./element.js";

/** More lines than these have no bar: the most expensive ones count. */
const LINES_MAX = 200;
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export class CostsView {
  #editor;
  #container;
  #note;
  #details;
  #summary = "";
  #isWaiting = false;
  /** The words about each line. */
  #texts = new Map();

  /** The costs in `editor`, which is in `container`, with words about them in `note` and a list of them in `details`. */
  constructor(editor, container, note, details) {
    [this.#editor, this.#container, this.#note, this.#details] = [editor, container, note, details];
    editor.onLine = (line) => (note.textContent = this.#texts.get(line) ?? this.#summary);
  }

  /** Says that what is shown is of an older source or message. */
  wait() {
    this.#isWaiting = true;
    this.#container.classList.add("busy");
  }

  /** Shows the costs of a message; null for none. */
  show(profile) {
    this.#isWaiting = false;
    this.#container.classList.remove("busy");
    const costly = (profile?.lines ?? []).toSorted((one, other) => other.fuel - one.fuel).slice(0, LINES_MAX);
    const lines = costly.sort((one, other) => one.line - other.line);
    const costs = lines.map((line) => costOf(line, profile.fuel - profile.outside));
    this.#texts = new Map(costs.map(({ line, text }) => [line, text]));
    this.#editor.showCosts(costs);
    this.#details.hidden = profile === null;
    this.#details.querySelector("ul").replaceChildren(...costs.map((cost) => this.#item(cost)));
    this.#summary = profile === null ? "" : summary(profile, lines.length);
    this.#note.textContent = this.#summary;
  }

  /** Shows nothing if nothing has been shown since `wait`. */
  settle() {
    if (this.#isWaiting) this.show(null);
  }

  #item({ line, text }) {
    const [place, cost] = [`Line ${line}`, text.slice(text.indexOf(":"))];
    return element("li", {}, element("button", { type: "button", class: "link", onclick: () => this.#editor.goTo(line, 1) }, place), cost);
  }
}

/** The cost of a line, as a share of what the source used in all. */
function costOf({ line, fuel, runs }, all) {
  const share = (100 * fuel) / Math.max(1, all);
  const often = runs === 1 ? "run once" : `run ${grouped(runs)} times`;
  return { line, share, amount: SHORT.format(fuel), text: `Line ${line}: ${grouped(fuel)} fuel, ${share.toFixed(1)}% of the source, ${often}` };
}

function summary({ fuel, outside, lines }, count) {
  const most = count < lines.length ? ` The ${count} lines that use most have one.` : "";
  return `Bars show the fuel of lines, which measures their work alike on every machine: ${grouped(fuel - outside)} in all, and ${grouped(outside)} of the sandbox itself.${most}`;
}
