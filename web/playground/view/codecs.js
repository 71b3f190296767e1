// All codecs of a folder: what came of the examples of each, and whether it runs on networks. They are looked at one after
// the other, by a worker of their own, so that nothing waits for them that somebody does meanwhile.

import { Workbench } from "../workbench/workbench.js";
import { counted, element, grouped, rove } from "./element.js";

/** More codecs are not in the table. */
const CODECS_MAX = 2000;
/** Longer reasons are cut. */
const REASON_CHARACTERS = 120;
/** Codecs that are looked at together: the directory that they are in is read once for all of them. */
const TOGETHER_MAX = 16;
/** The pause in typing after which codecs are looked at again, in milliseconds. */
const DELAY_MS = 400;
/** What can be said of a codec, in the order of the table. */
const [UNREAD, FAILS, RUNS_NOT, OTHER] = [0, 1, 2, 3];

export class CodecsView {
  #part;
  #workbench;
  #open;
  /** A row for each codec, in the order of the folder: what is known of it, null before, and its element. */
  #rows = [];
  #left = 0;
  /** The networks; null until they are known. */
  #networks = null;
  #isWorking = false;
  #isStopped = false;
  /** The reason why the workbench cannot be loaded; empty if it can. */
  #problem = "";
  #timer = null;

  /** The table in `part`; `open` is called with the place of a codec that is chosen. `sandbox` has the guest and its limits. */
  constructor(part, sandbox, open) {
    [this.#part, this.#workbench, this.#open] = [part, new Workbench(sandbox), open];
    this.#select.onchange = () => this.#drawAll();
    this.#button.onclick = () => (this.#isStopped ? this.#goOn() : this.#stop());
  }

  /** Shows the codecs of files, each by its `origin` and with its `name`. One alone needs no table. */
  show(codecs, files) {
    this.clear();
    this.#workbench.openFiles(files);
    this.#part.hidden = codecs.length < 2;
    if (this.#part.hidden) return;
    this.#left = Math.max(0, codecs.length - CODECS_MAX);
    this.#rows = codecs.slice(0, CODECS_MAX).map(({ origin, name }, place) => this.#row(origin, name, place));
    this.#body.replaceChildren(...this.#rows.map(({ view }) => view));
    rove(this.#body, "button");
    this.#goOn();
  }

  /** Forgets all codecs: others may be opened. */
  clear() {
    clearTimeout(this.#timer);
    this.#workbench.stop("another folder is opened");
    [this.#rows, this.#left] = [[], 0];
    this.#part.hidden = true;
    this.#body.replaceChildren();
  }

  /** Hears that a file is another one, or new: what is known of the codecs beside it may be wrong. */
  changed(path, file) {
    this.#workbench.putFile(path, file);
    const directory = directoryOf(path);
    const isBeside = ({ origin: { script, examples } }) => [script, examples].some((one) => one !== null && directoryOf(one) === directory);
    for (const row of this.#rows.filter(isBeside)) {
      row.changes += 1;
      [row.tested, row.linted, row.isAlone] = [null, null, false];
    }
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#work(), DELAY_MS);
  }

  /** Marks the codec that is in the editor; null for none of them. */
  mark(place) {
    for (const row of this.#rows) row.view.querySelector("button").setAttribute("aria-current", String(row.place === place));
  }

  get #body() {
    return this.#part.querySelector("tbody");
  }

  get #select() {
    return this.#part.querySelector("select");
  }

  get #button() {
    return this.#part.querySelector("button");
  }

  #row(origin, name, place) {
    const choose = element("button", { type: "button", onclick: () => this.#open(place) }, name);
    const cells = [element("td", { class: "wide" }, choose), ...["Examples", "Runs on"].map((label) => element("td", { "data-label": label }, "…"))];
    const view = element("tr", {}, ...cells);
    return { origin, place, view, rank: OTHER, tested: null, linted: null, isAlone: false, changes: 0 };
  }

  #goOn() {
    [this.#isStopped, this.#problem] = [false, ""];
    this.#work();
  }

  #stop() {
    this.#isStopped = true;
    this.#workbench.stop("it was stopped");
    this.#tell();
  }

  /** Looks at all codecs of which something is not known. */
  async #work() {
    if (this.#isWorking) return;
    // Until they go on, nothing is known of those whose files have changed.
    if (this.#isStopped) return this.#drawAll();
    this.#isWorking = true;
    const next = () => (this.#isStopped ? undefined : this.#rows.find(({ tested, linted }) => tested === null || linted === null));
    for (let row = next(); row !== undefined; row = next()) {
      this.#tell();
      if (this.#networks === null) await this.#name();
      if (this.#isStopped || this.#rows[row.place] !== row) continue;
      await (row.isAlone ? this.#judge(row) : this.#compare(row));
    }
    this.#isWorking = false;
    this.#tell();
  }

  /** Looks at a codec and those after it in its directory. */
  async #compare(first) {
    const directory = homeOf(first);
    const isBeside = (row) => row.tested === null && !row.isAlone && homeOf(row) === directory;
    const rows = this.#rows.slice(first.place).filter(isBeside).slice(0, TOGETHER_MAX);
    const changes = rows.map((row) => row.changes);
    const told = await this.#workbench.compareCodecs(rows.map(({ origin }) => origin)).catch((error) => this.#refused(error));
    if (this.#isStopped) return;
    rows.forEach((row, place) => {
      if (this.#rows[row.place] !== row || row.changes !== changes[place]) return;
      // One of them may be too much for the workbench, and it says which if each is looked at alone.
      if (told.message !== undefined) row.isAlone = true;
      else this.#know(row, told[place]);
    });
  }

  #know(row, { report, verdicts }) {
    row.tested = resultOf({ report });
    row.linted = verdicts === null ? { message: "the codec cannot be read from its files" } : verdicts.map(verdictOf);
    this.#draw(row);
  }

  async #judge(row) {
    const { origin, changes } = row;
    const isTest = row.tested === null;
    const answer = isTest ? this.#workbench.testCodec(origin, null) : this.#workbench.lintCodec(origin);
    const told = await answer.catch((error) => this.#refused(error));
    // It was stopped, another folder is open, or a file has changed meanwhile.
    if (this.#isStopped || this.#rows[row.place] !== row || row.changes !== changes) return;
    if (isTest) row.tested = resultOf(told);
    else row.linted = told.message === undefined ? told.map(verdictOf) : told;
    this.#draw(row);
  }

  /** What is told of a codec without an answer. Each further one would load the workbench again: if it is away, they wait. */
  #refused({ message, isAway }) {
    if (isAway) [this.#isStopped, this.#problem] = [true, message];
    return { message };
  }

  /** Names the networks that can be chosen. */
  async #name() {
    const networks = await this.#workbench.networks().catch((error) => this.#refused(error));
    // Another reason is told of each codec.
    if (networks.message !== undefined) return;
    this.#networks = networks;
    this.#select.append(...networks.map(({ name, title }) => element("option", { value: name }, title)));
  }

  #drawAll() {
    this.#rows.forEach((row) => this.#draw(row));
    this.#tell();
  }

  /** Shows what is known of a codec, and moves it to where it belongs: those that fail come first. */
  #draw(row) {
    const { tested, linted, view } = row;
    const [, examples, networks] = view.children;
    const verdict = linted === null ? { text: "…", isBad: false } : judged(linted, this.#select.value);
    examples.textContent = tested?.text ?? "…";
    examples.classList.toggle("failed", tested !== null && tested.rank !== OTHER);
    networks.textContent = verdict.text;
    networks.classList.toggle("failed", verdict.isBad);
    row.rank = Math.min(tested?.rank ?? OTHER, verdict.isBad ? RUNS_NOT : OTHER);
    const isAfter = (other) => other.rank > row.rank || (other.rank === row.rank && other.place > row.place);
    const others = this.#rows.filter((other) => other !== row && isAfter(other));
    const after = others.reduce((first, other) => (first === null || first.rank > other.rank ? other : first), null);
    if (view.nextSibling !== (after?.view ?? null)) move(view, this.#body, after?.view ?? null);
  }

  /** Says how far it is, and in the end how many codecs fail. */
  #tell() {
    const waiting = this.#rows.filter(({ tested, linted }) => tested === null || linted === null).length;
    const [button, progress] = [this.#button, this.#part.querySelector("progress")];
    button.hidden = progress.hidden = waiting === 0;
    button.textContent = this.#isStopped ? "Go on" : "Stop";
    [progress.max, progress.value] = [this.#rows.length, this.#rows.length - waiting];
    const all = counted(this.#rows.length, "codec");
    if (waiting > 0 && !this.#isStopped) return this.#say(`Running the examples of ${all}…`);
    const count = (wanted) => this.#rows.filter(({ rank }) => rank === wanted).length;
    const runsNot = this.#select.value === "" ? ["runs on no network", "run on no network"] : ["does not run on this network", "do not run on this network"];
    const told = [[count(UNREAD), "cannot be run", "cannot be run"], [count(FAILS), "fails", "fail"], [count(RUNS_NOT), ...runsNot]];
    const faults = told.filter(([number]) => number > 0).map(([number, one, several]) => `${grouped(number)} ${number === 1 ? one : several}`);
    const left = waiting === 0 ? "" : ` Stopped before ${grouped(waiting)} of them${this.#problem === "" ? "" : `: ${this.#problem}`}.`;
    const cut = this.#left === 0 ? "" : ` ${grouped(this.#left)} more are only in the list below.`;
    return this.#say(`${all}: ${faults.length === 0 ? "no faults" : faults.join(", ")}.${left}${cut}`);
  }

  #say(text) {
    const status = this.#part.querySelector("[role=status]");
    // The same text put there again would be read aloud again.
    if (status.textContent !== text) status.textContent = text;
  }
}

/** What came of the examples of a codec, in words, and where that belongs in the table. */
function resultOf({ message, report }) {
  if (message !== undefined) return { text: cut(`did not run: ${message}`), rank: UNREAD };
  if (report === null) return { text: "cannot be read", rank: UNREAD };
  if (report.failure !== null) return { text: cut(`cannot be loaded: ${report.failure}`), rank: UNREAD };
  const all = report.examples.length;
  if (all === 0) return { text: "none", rank: OTHER };
  const failed = report.examples.filter(({ outcome }) => outcome === "failed");
  // A line of the source is named where a function has ended with an error.
  const thrown = failed.filter(({ line }) => line !== null).length;
  const passed = report.examples.filter(({ outcome }) => outcome === "passed").length;
  if (failed.length === 0) return { text: passed === all ? `${grouped(all)} passed` : `${grouped(passed)} of ${grouped(all)} passed, none failed`, rank: OTHER };
  return { text: `${grouped(failed.length)} of ${grouped(all)} failed${thrown === 0 ? "" : `, ${grouped(thrown)} with an error`}`, rank: FAILS };
}

/** What is kept of a verdict. */
function verdictOf({ target, runs, findings }) {
  return { target, runs, errors: findings.filter(({ level }) => level === "error").length };
}

/** The verdict on a network, or the number of networks that a codec runs on if none is chosen. */
function judged(linted, network) {
  if (linted.message !== undefined) return { text: cut(linted.message), isBad: true };
  const runs = linted.filter((verdict) => verdict.runs).length;
  if (network === "") return { text: `${runs} of ${linted.length} networks`, isBad: runs === 0 };
  const verdict = linted.find(({ target }) => target === network);
  return verdict.runs ? { text: "yes", isBad: false } : { text: counted(verdict.errors, "error"), isBad: true };
}

/** Moves an element in front of another one, or to the end, without taking the focus from what is in it. */
function move(view, body, before) {
  const focused = view.contains(document.activeElement) ? document.activeElement : null;
  body.insertBefore(view, before);
  focused?.focus({ preventScroll: true });
}

/** The directory in which a codec is described. */
function homeOf({ origin: { script, examples } }) {
  return directoryOf(examples ?? script ?? "");
}

function directoryOf(path) {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function cut(text) {
  const [line] = text.split("\n", 1);
  return line.length > REASON_CHARACTERS ? `${line.slice(0, REASON_CHARACTERS)}…` : line;
}
