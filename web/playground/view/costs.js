// What each line of the source cost in fuel: a bar behind its number, and the exact amount in words.

import { element, grouped, rove } from "./element.js";

/** More lines than these have no bar: the most expensive ones count. */
const LINES_MAX = 200;

export class CostsView {
  #editor;
  #list;
  #note;
  #reveal;
  #summary = "";
  #isWaiting = false;

  /** The bars in `editor`, with their words in `note`; `reveal` scrolls a line into view. */
  constructor(editor, note, reveal) {
    [this.#editor, this.#note, this.#reveal] = [editor, note, reveal];
    this.#list = editor.querySelector(".costs");
  }

  /** Says that what is shown is of an older source or message. */
  wait() {
    this.#isWaiting = true;
    this.#editor.classList.add("busy");
  }

  /** Shows the costs of a message; null for none. */
  show(profile) {
    this.#isWaiting = false;
    this.#editor.classList.remove("busy");
    this.#list.hidden = profile === null;
    const costly = (profile?.lines ?? []).toSorted((one, other) => other.fuel - one.fuel).slice(0, LINES_MAX);
    const lines = costly.sort((one, other) => one.line - other.line);
    this.#list.replaceChildren(...lines.map((line) => this.#item(line, profile.fuel - profile.outside)));
    rove(this.#list, "li");
    this.#summary = profile === null ? "" : summary(profile, lines.length);
    this.#note.textContent = this.#summary;
  }

  /** Shows nothing if nothing has been shown since `wait`. */
  settle() {
    if (this.#isWaiting) this.show(null);
  }

  /** A line, as a share of what the source used in all. */
  #item({ line, fuel, runs }, all) {
    const share = (100 * fuel) / Math.max(1, all);
    const text = `Line ${line}: ${grouped(fuel)} fuel, ${share.toFixed(1)}% of the source, ${runs === 1 ? "run once" : `run ${grouped(runs)} times`}`;
    const bar = element("span", { class: "share" });
    bar.style.width = `${share}%`;
    const item = element("li", { title: text }, bar, element("span", { class: "unseen" }, text));
    item.style.setProperty("--line", line);
    item.onmouseenter = () => (this.#note.textContent = text);
    item.onmouseleave = item.onblur = () => (this.#note.textContent = this.#summary);
    item.onfocus = () => {
      this.#reveal(line);
      this.#note.textContent = text;
    };
    return item;
  }
}

function summary({ fuel, outside, lines }, count) {
  const most = count < lines.length ? ` The ${count} lines that use most have a bar.` : "";
  return `Bars show the fuel of lines: ${grouped(fuel - outside)} in all, and ${grouped(outside)} of the sandbox itself.${most}`;
}
