// Random payloads for the functions of the codec, and those that show a fault.

import { bytesOfHex } from "../payload.js";
import { Workbench, submitted } from "../workbench/workbench.js";
import { counted, element, grouped } from "./element.js";
import { failureView } from "./failure.js";

const COUNT = 10_000;
const SEED_MAX = 2 ** 53 - 1;

export class FuzzView {
  #details;
  #page;
  #workbench;
  /** The codec that runs, or has run; null before. */
  #fuzzed = null;
  /** The run whose report is awaited; null for none. */
  #running = null;

  /**
   * The part in `details`. `page` has `codec()`, `goTo`, and `add` for a payload on a port; `sandbox` has the guest and its
   * limits.
   */
  constructor(details, sandbox, page) {
    [this.#details, this.#workbench, this.#page] = [details, new Workbench(sandbox), page];
    this.#button.onclick = () => (this.#running === null ? this.#start() : this.#stop("Stopped."));
  }

  /** Hears that the codec or its messages are others: failures of another codec say nothing. */
  changed() {
    if (this.#fuzzed === null || this.#fuzzed === this.#key()) return;
    this.#stop("");
    this.#fuzzed = null;
    this.#result.replaceChildren();
  }

  get #button() {
    return this.#details.querySelector("button");
  }

  get #result() {
    return this.#details.querySelector(".fuzzed");
  }

  get #status() {
    return this.#details.querySelector("[role=status]");
  }

  async #start() {
    const text = this.#details.querySelector("input").value.trim();
    if (!/^\d{1,16}$/.test(text) || Number(text) > SEED_MAX) return this.#say(`A seed is a number from 0 to ${grouped(SEED_MAX)}.`);
    const { sources, messages } = this.#page.codec();
    const run = Symbol("run");
    [this.#running, this.#fuzzed] = [run, this.#key()];
    this.#button.textContent = "Stop";
    this.#result.replaceChildren();
    this.#say("Running…");
    const heard = (count) => this.#say(`Running: ${counted(count, "call")} of the functions…`);
    const report = await this.#workbench.fuzz(submitted(sources, messages), Number(text), COUNT, heard).catch((error) => ({ failure: error.message }));
    // Who has stopped it knows that it ended.
    return run === this.#running ? this.#show(report) : undefined;
  }

  #show({ failure, has_targets: hasTargets, ended_after: endedAfter, findings }) {
    if (failure !== undefined) return this.#end(`It ended: ${failure}`);
    if (!hasTargets) return this.#end("The codec has no function that takes a payload.");
    const early = endedAfter === undefined ? "" : " It ended early, because they take long.";
    const found = findings.length === 0 ? "nothing failed" : `${findings.length} ${findings.length === 1 ? "way" : "different ways"} to fail`;
    this.#end(`${grouped(endedAfter ?? COUNT)} payloads: ${found}.${early}`);
    return this.#result.replaceChildren(...findings.map((finding) => this.#item(finding)));
  }

  #item({ function: name, port, bytes, line, message }) {
    const add = () => this.#page.add(bytesOfHex(bytes), port);
    const button = element("button", { type: "button", class: "quiet", onclick: add }, "Add to the payloads");
    return element(
      "li",
      {},
      failureView({ line, column: 1, text: firstLine(message) }, this.#page.goTo),
      element("p", {}, element("code", {}, bytes === "" ? "(empty)" : bytes), ` on port ${port} `, name === "uplink" ? button : "of a downlink"),
    );
  }

  /** Ends what runs. What has ended by itself leaves its worker, with the sandbox, for the next run. */
  #stop(text) {
    const isRunning = this.#running !== null;
    this.#end(text);
    if (isRunning) this.#workbench.stop(text);
  }

  #end(text) {
    this.#running = null;
    this.#button.textContent = `Run ${grouped(COUNT)} payloads`;
    this.#say(text);
  }

  #say(text) {
    this.#status.textContent = text;
  }

  #key() {
    return JSON.stringify(this.#page.codec().sources);
  }
}

/** A message without the line of the source, which the editor shows. */
function firstLine(text) {
  return text.split("\n", 1)[0];
}
