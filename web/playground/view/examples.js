// Saves the payloads with what the codec returns for them, in a layout that `airlock functions test` reads.

import { EXAMPLES_MAX } from "../examples/examples.js";
import { LAYOUTS, writeExamples } from "../examples/layouts.js";
import { Runner } from "../runner.js";
import { counted, element, grouped, shown } from "./element.js";

/** The time after which a file that is saved is there no more, in milliseconds: Safari reads it some time after the click. */
const SAVED_MS = 60_000;

export class ExamplesView {
  #details;
  #sandbox;
  #page;
  #runner = null;
  /** What is to be written once the examples have run. */
  #wanted = null;

  /**
   * The part in `details`. `page` has `codec()`, and `keep`, which takes the file if a folder is open that lacks it and has
   * its script; `sandbox` has the guest and its limits.
   */
  constructor(details, sandbox, page) {
    [this.#details, this.#sandbox, this.#page] = [details, sandbox, page];
    this.#select.append(...Object.entries(LAYOUTS).map(([name, { title }]) => element("option", { value: name }, title)));
    details.querySelector("button").onclick = () => this.#run();
  }

  get #select() {
    return this.#details.querySelector("select");
  }

  #run() {
    const { sources, messages, downlink, script } = this.#page.codec();
    if (messages.length === 0 && downlink === null) return this.#say("There are no payloads: type one.");
    this.#runner ??= new Runner(this.#sandbox.guest, this.#sandbox.limits, (report) => this.#hear(report), "examples/worker.js");
    this.#wanted = { layout: this.#select.value, script, dialect: sources.dialect };
    this.#say("Running…");
    // Another layout does not wait for what runs.
    this.#runner.stop();
    return this.#runner.ask({ sources, messages, downlink });
  }

  #hear(report) {
    if (report.kind === "examples") this.#save(report.examples);
    if (report.kind === "broken") this.#say(`Nothing was saved: ${report.reason}`);
  }

  #save(examples) {
    const { layout, ...codec } = this.#wanted;
    const { file, content, script, count, left } = writeExamples(layout, { ...codec, examples });
    if (count === 0) return this.#say("Nothing was saved: this layout can state none of these examples.");
    const isKept = this.#page.keep(file, content, script);
    if (!isKept) save(file, content);
    const unstated = left === 0 ? "" : ` It leaves out ${grouped(left)}, which this layout cannot state.`;
    const cut = examples.cut === 0 ? "" : ` The last ${counted(examples.cut, "payload")} did not run: a codec has at most ${grouped(EXAMPLES_MAX)} examples.`;
    return this.#say(`${isKept ? "Added to the folder: " : "Saved "}${file} with ${counted(count, "example")}. It belongs beside ${script}.${unstated}${cut}`);
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
