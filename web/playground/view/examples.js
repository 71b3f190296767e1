// Saves the payloads with what the codec returns for them, in a layout that `airlock functions test` reads. The workbench
// writes it.

import { EXAMPLES_MAX, Workbench, submitted } from "../workbench/workbench.js";
import { counted, element, grouped, shown } from "./element.js";

/** The time after which a file that is saved is there no more, in milliseconds: Safari reads it some time after the click. */
const SAVED_MS = 60_000;

export class ExamplesView {
  #details;
  #page;
  #workbench;
  /** The run whose file is awaited; null for none. */
  #running = null;

  /**
   * The part in `details`. `page` has `codec()`, and `keep`, which takes the file if a folder is open that lacks it and has
   * its codec in the editor; `sandbox` has the guest and its limits.
   */
  constructor(details, sandbox, page) {
    [this.#details, this.#page, this.#workbench] = [details, page, new Workbench(sandbox)];
    details.querySelector("button").onclick = () => this.#run();
  }

  async #run() {
    const { sources, messages, downlink, script } = this.#page.codec();
    if (messages.length === 0 && downlink === null) return this.#say("There are no payloads: type one.");
    // Another layout does not wait for what runs.
    if (this.#running !== null) this.#workbench.stop("another file is wanted");
    const run = Symbol("run");
    this.#running = run;
    this.#say("Running…");
    const layout = this.#details.querySelector("select").value;
    const payloads = messages.map(({ port, payload, timeMs }) => ({ port, payload: [...payload], timeMs }));
    const made = await this.#workbench.newExamples(layout, script, submitted(sources, []), payloads, downlink).catch(({ message }) => ({ message }));
    if (run !== this.#running) return undefined;
    this.#running = null;
    return made.message === undefined ? this.#save(made, sources.text) : this.#say(`Nothing was saved: ${made.message}`);
  }

  #save({ file, text, script, count, left, cut }, source) {
    if (count === 0) return this.#say("Nothing was saved: this layout can state none of these examples.");
    const isKept = this.#page.keep(file, text, { script, text: source });
    if (!isKept) save(file, text);
    const unstated = left === 0 ? "" : ` It leaves out ${grouped(left)}, which this layout cannot state.`;
    const late = cut === 0 ? "" : ` The last ${counted(cut, "payload")} did not run: a codec has at most ${grouped(EXAMPLES_MAX)} examples.`;
    return this.#say(`${isKept ? "Added to the folder: " : "Saved "}${file} with ${counted(count, "example")}. It belongs beside ${script}.${unstated}${late}`);
  }

  #say(text) {
    this.#details.querySelector("[role=status]").textContent = shown(text);
  }
}

/** Saves a text as a file, where the browser saves files. */
export function save(name, content, type = "text/plain") {
  const url = URL.createObjectURL(new Blob([content], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), SAVED_MS);
}
