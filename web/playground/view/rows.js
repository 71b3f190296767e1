// Several messages with what came of each, as a table in pages.

import { hexOf } from "../payload.js";
import { element, grouped, spaced } from "./element.js";

const PAGE_ROWS = 100;
/** Longer payloads and results are cut. */
const CELL_CHARACTERS = 120;

export class RowsView {
  #container;
  #select;
  #messages = [];
  #outcomes = [];
  #selected = 0;
  #page = 0;

  /** The table in `container`; `select` is called with the place of a message that is chosen. */
  constructor(container, select) {
    this.#container = container;
    this.#select = select;
  }

  /** Shows messages of which nothing is known yet. One alone needs no table. */
  show(messages, selected) {
    const isSame = messages.length === this.#messages.length;
    [this.#messages, this.#selected] = [messages, selected];
    if (!isSame) this.#outcomes = [];
    if (!isSame) this.#page = Math.floor(selected / PAGE_ROWS);
    this.#container.hidden = messages.length < 2;
    this.#draw();
  }

  /** Adds outcomes, each with the place of its message. */
  add(outcomes) {
    for (const { place, outcome } of outcomes) {
      this.#outcomes[place] = outcome;
      const row = this.#container.querySelector(`tr[data-place="${place}"]`);
      row?.replaceWith(this.#row(place));
    }
    this.#count();
  }

  /** Forgets all outcomes: they are not those of the codec that is typed now. */
  forget() {
    this.#outcomes = [];
    this.#draw();
  }

  #draw() {
    if (this.#container.hidden) return this.#container.replaceChildren();
    const from = this.#page * PAGE_ROWS;
    const places = [...this.#messages.keys()].slice(from, from + PAGE_ROWS);
    const head = ["Line", "Port", "Payload", "Result", "Fuel"].map((name) => element("th", { scope: "col" }, name));
    const body = element("tbody", {}, ...places.map((place) => this.#row(place)));
    const table = element("table", { class: "messages", "aria-label": "Messages" }, element("thead", {}, element("tr", {}, ...head)), body);
    const count = element("p", { class: "hint count" });
    this.#container.replaceChildren(element("div", { class: "scroll" }, table), element("div", { class: "pages" }, count, ...this.#pages()));
    return this.#count();
  }

  #pages() {
    const last = Math.ceil(this.#messages.length / PAGE_ROWS) - 1;
    if (last < 1) return [];
    const to = (page, name) => {
      const turn = () => {
        this.#page = page;
        this.#draw();
      };
      return element("button", { type: "button", class: "quiet", disabled: page < 0 || page > last, onclick: turn }, name);
    };
    return [to(this.#page - 1, "Previous"), element("span", {}, `Page ${this.#page + 1} of ${last + 1}`), to(this.#page + 1, "Next")];
  }

  #row(place) {
    const { line, port, payload, problem, isTakenForBase64 } = this.#messages[place];
    const outcome = this.#outcomes[place];
    const [result, isFailed] = problem === undefined ? resultOf(outcome) : [problem, true];
    const name = problem === undefined ? cut(hexOf(payload)) || "(empty)" : "not read";
    const button = element("button", { type: "button", "aria-pressed": String(place === this.#selected), onclick: () => this.#choose(place) }, name);
    return element(
      "tr",
      { "data-place": String(place), "aria-selected": String(place === this.#selected) },
      element("td", {}, String(line)),
      element("td", { "data-label": "Port" }, problem === undefined ? String(port) : ""),
      element("td", {}, button, isTakenForBase64 === true ? element("span", { class: "hint" }, "read as Base64") : null),
      element("td", { class: isFailed ? "failed" : "" }, cut(result)),
      element("td", { class: "number", "data-label": "Fuel" }, outcome === undefined || problem !== undefined ? "" : grouped(outcome.fuel)),
    );
  }

  #choose(place) {
    const before = this.#selected;
    this.#selected = place;
    for (const one of [before, place]) this.#container.querySelector(`tr[data-place="${one}"]`)?.replaceWith(this.#row(one));
    this.#container.querySelector(`tr[data-place="${place}"] button`)?.focus();
    this.#select(place);
  }

  #count() {
    const count = this.#container.querySelector(".count");
    if (count === null) return;
    const done = this.#outcomes.filter((outcome) => outcome !== undefined);
    const failed = done.filter(({ failure }) => failure !== null).length + this.#messages.filter(({ problem }) => problem !== undefined).length;
    const all = this.#messages.length;
    const [isUnknown, isRunning] = [done.length === 0, done.length < this.#messages.filter(({ problem }) => problem === undefined).length];
    count.textContent = isUnknown ? `${grouped(all)} messages` : `${grouped(all)} messages, ${grouped(failed)} failed${isRunning ? ", running…" : ""}`;
  }
}

function resultOf(outcome) {
  if (outcome === undefined) return ["…", false];
  if (outcome.failure !== null) return [outcome.failure.text, true];
  // One character more shows that it is cut.
  return [spaced(outcome.value.json.slice(0, CELL_CHARACTERS + 1)), false];
}

function cut(text) {
  return text.length > CELL_CHARACTERS ? `${text.slice(0, CELL_CHARACTERS)}…` : text;
}
