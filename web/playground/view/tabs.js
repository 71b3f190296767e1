// Tabs, of which one is chosen: by a click, or by arrow keys.

import { element } from "./element.js";

export class Tabs {
  #list;
  #panel;
  #choose;
  #tabs = [];

  /** Tabs in `list` for what is in `panel`; `choose` is called with the name of the one that is chosen. */
  constructor(list, panel, choose) {
    [this.#list, this.#panel, this.#choose] = [list, panel, choose];
    list.onkeydown = (event) => this.#move(event);
  }

  /** Shows tabs, each with a `name`, a `title` and a `note`, which may be null. */
  show(tabs, chosen) {
    const hasFocus = this.#list.contains(document.activeElement);
    this.#tabs = tabs.map(({ name, title, note }) =>
      element(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${name}`,
          "aria-controls": this.#panel.id,
          "aria-selected": String(name === chosen),
          tabindex: name === chosen ? "0" : "-1",
          onclick: () => this.#choose(name),
        },
        title,
        note === null ? null : element("span", { class: `note ${note}` }, ` ${note}`),
      ),
    );
    this.#list.replaceChildren(...this.#tabs);
    this.#list.hidden = false;
    this.#panel.setAttribute("aria-labelledby", `tab-${chosen}`);
    if (hasFocus) this.#list.querySelector("[aria-selected=true]")?.focus();
  }

  #move(event) {
    const at = this.#tabs.indexOf(event.target.closest("[role=tab]"));
    const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: this.#tabs.length - 1 }[event.key];
    const tab = next === undefined ? undefined : this.#tabs.at(next % this.#tabs.length);
    if (at < 0 || tab === undefined) return;
    event.preventDefault();
    tab.click();
  }
}
