// On which networks the codec runs, and its text as another network takes it. Nothing is judged before somebody opens this
// part.

import { counted, element, grouped } from "./element.js";
import { Tabs } from "./tabs.js";
import { Workbench, submitted } from "../workbench/workbench.js";

/** The pause in typing after which the codec is judged again, in milliseconds. */
const DELAY_MS = 500;
/** More payloads are not run: each runs once for every network. */
const UPLINKS_MAX = 8;

export class NetworksView {
  #details;
  #panel;
  #tabs;
  #page;
  #workbench;
  /** The networks; null until they are known. */
  #networks = null;
  #chosen = null;
  #verdicts = [];
  /** The codec that the verdicts are about, and whether another one waits. */
  #judged = null;
  #isAsking = false;
  #timer = null;

  /**
   * The part in `details`. `sandbox` has the guest and its limits; `page` has `codec()`, `goTo`, `remark` for reasons on
   * lines, `use` for another text, and `chose`, which hears that another network may be chosen.
   */
  constructor(details, sandbox, page) {
    [this.#details, this.#page, this.#workbench] = [details, page, new Workbench(sandbox)];
    this.#panel = details.querySelector("[role=tabpanel]");
    this.#tabs = new Tabs(details.querySelector("[role=tablist]"), this.#panel, (name) => this.#choose(name));
    details.addEventListener("toggle", () => this.#toggle());
  }

  /** The name of the network that is shown; null for none. */
  get chosen() {
    return this.#details.open ? this.#chosen : null;
  }

  /** Shows a network, by the name that a link has. */
  open(name) {
    this.#chosen = name;
    // Opening it leads there, too.
    if (this.#details.open && this.#networks !== null) this.#toggle();
    this.#details.open = true;
  }

  /** Hears that the codec or its messages are others. */
  changed() {
    this.#page.remark([]);
    // It would replace what has been typed since.
    this.#panel.querySelector(".ported")?.replaceChildren();
    clearTimeout(this.#timer);
    if (this.#details.open && this.#networks !== null) this.#timer = setTimeout(() => this.#ask(), DELAY_MS);
  }

  async #toggle() {
    if (!this.#details.open) {
      clearTimeout(this.#timer);
      this.#page.chose();
      return this.#page.remark([]);
    }
    try {
      this.#networks ??= await this.#workbench.networks();
    } catch (error) {
      return this.#failed(error, () => this.#toggle());
    }
    const isKnown = this.#networks.some(({ name }) => name === this.#chosen);
    if (!isKnown) this.#chosen = this.#networks[0].name;
    this.#page.chose();
    this.#show();
    return this.#ask();
  }

  /** Asks for verdicts on what is typed now; while one answer is due, or this part is closed, nothing else is asked. */
  async #ask() {
    if (this.#isAsking || !this.#details.open) return;
    this.#isAsking = true;
    const codec = this.#codec();
    try {
      this.#verdicts = await this.#workbench.lint(codec);
      this.#judged = codec;
      this.#show();
    } catch (error) {
      [this.#judged, this.#verdicts] = [null, []];
      this.#show();
      this.#failed(error, () => this.#ask());
    } finally {
      this.#isAsking = false;
    }
    if (this.#judged !== null && !this.#isCurrent()) this.changed();
  }

  #codec() {
    const { sources, messages } = this.#page.codec();
    return submitted(sources, messages, UPLINKS_MAX);
  }

  /** True if the verdicts are about what is typed. The time of messages that have none is no difference. */
  #isCurrent() {
    const known = ({ text, dialect, uplinks }) => JSON.stringify([text, dialect, uplinks.map((uplink) => [uplink.port, uplink.payload])]);
    return known(this.#codec()) === known(this.#judged);
  }

  #choose(name) {
    this.#chosen = name;
    this.#show();
    this.#page.chose();
    // After an answer that failed.
    if (this.#judged === null) this.#ask();
  }

  #show() {
    const noteOf = (name) => {
      const verdict = this.#verdictOn(name);
      return verdict === undefined ? null : verdict.runs ? "yes" : "no";
    };
    this.#tabs.show(this.#networks.map(({ name, title }) => ({ name, title, note: noteOf(name) })), this.#chosen);
    const verdict = this.#verdictOn(this.#chosen);
    if (verdict === undefined) return this.#say("Judging…");
    const { title } = this.#networks.find(({ name }) => name === this.#chosen);
    const ported = element("div", { class: "ported" });
    const parts = [
      verdictView(verdict, title),
      findingsView(verdict.findings, this.#page.goTo),
      element("button", { type: "button", class: "quiet", id: "port-codec", onclick: () => this.#port(this.#chosen, title, ported) }, `Port to ${title}`),
      ported,
    ];
    this.#panel.replaceChildren(...parts.filter((part) => part !== null));
    const isShown = this.#details.open && this.#isCurrent();
    return this.#page.remark(isShown ? verdict.findings.filter(({ line }) => line !== null) : []);
  }

  #verdictOn(name) {
    return this.#verdicts.find(({ target }) => target === name);
  }

  /** Shows the codec as a network takes it, in `container`, which another verdict replaces. */
  async #port(target, title, container) {
    container.replaceChildren(element("p", { class: "hint", role: "status" }, "Porting…"));
    const codec = this.#codec();
    try {
      const reply = await this.#workbench.port(codec, target);
      if (codec.text !== this.#codec().text) return;
      container.replaceChildren(...portedView(reply, title, this.#page));
    } catch (error) {
      container.replaceChildren(element("p", { class: "wrong", role: "status" }, `The codec was not ported: ${error.message}`));
    }
  }

  #say(text) {
    this.#panel.replaceChildren(element("p", { class: "empty" }, text));
  }

  #failed(error, again) {
    const retry = element("button", { type: "button", class: "quiet", onclick: again }, "Try again");
    this.#page.remark([]);
    this.#panel.replaceChildren(element("p", { class: "wrong", role: "status" }, `There is no verdict: ${error.message}`), retry);
  }
}

function verdictView({ runs, examples }, title) {
  const verdict = runs ? `Runs on ${title}.` : `Does not run on ${title}.`;
  const proof = examples === 0 ? "Judged from the text alone." : `${counted(examples, "payload")} ran by its rules.`;
  return element("p", { role: "status" }, element("span", { class: `badge ${runs ? "good" : "bad"}` }, verdict), ` ${proof}`);
}

/** Reasons, each with a way to its line if there is one: `goTo` is null where the lines are of another text. */
function findingsView(findings, goTo) {
  if (findings.length === 0) return null;
  const place = (line) => (goTo === null ? `Line ${line}` : element("button", { type: "button", class: "link", onclick: () => goTo(line, 1) }, `Line ${line}`));
  const item = ({ rule, level, line, message }) =>
    element("li", {}, line === null ? null : place(line), `${line === null ? "" : ": "}${message} `, element("code", {}, level === "error" ? rule : `${rule}, a warning`));
  return element("ul", { class: "findings" }, ...findings.map(item));
}

function portedView({ text, diff, isSound, changes, obstacles, differences, examples, compared, agreed }, title, page) {
  const problems = [...obstacles, ...differences];
  const others = examples - compared;
  const rest = others > 0 ? `, and ${others} ${others === 1 ? "says" : "say"} nothing about it` : "";
  const proof = compared === 0 ? "Nothing was proved: no payload can be run for it." : `${grouped(agreed)} of ${counted(compared, "payload")} ${agreed === 1 ? "agrees" : "agree"}${rest}.`;
  const use = element("button", { type: "button", class: "quiet", onclick: () => page.use(text) }, "Use this text");
  return [
    element("h3", {}, isSound ? "Ported" : `Not ready for ${title}`),
    element("p", { class: "hint", role: "status" }, proof),
    findingsView(problems, null),
    changes.length === 0 ? element("p", { class: "hint" }, "Nothing had to change.") : element("ul", {}, ...changes.map((change) => element("li", {}, change))),
    diff === "" ? null : diffView(diff),
    text === "" || diff === "" ? null : use,
  ].filter((part) => part !== null);
}

/** A unified diff, whose first two lines name the texts. */
function diffView(diff) {
  const lines = diff.replace(/\n$/, "").split("\n").slice(2);
  const view = (line) => element({ "+": "ins", "-": "del" }[line[0]] ?? "span", {}, line);
  return element("pre", { class: "diff", tabindex: "0", "aria-label": "What differs" }, ...lines.flatMap((line) => [view(line), "\n"]));
}
