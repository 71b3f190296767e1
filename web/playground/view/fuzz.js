// Random payloads for the decoder, and those that make it fail.

import { hexOf } from "../payload.js";
import { Runner } from "../runner.js";
import { element, grouped } from "./element.js";
import { failureView } from "./failure.js";

const COUNT = 10_000;
const SEED_MAX = 2 ** 53 - 1;

export class FuzzView {
  #details;
  #page;
  #sandbox;
  #runner = null;
  /** The codec that runs, or has run; null before. */
  #fuzzed = null;
  #isRunning = false;

  /**
   * The part in `details`. `page` has `codec()`, `goTo`, and `add` for a payload on a port; `sandbox` has the guest and its
   * limits.
   */
  constructor(details, sandbox, page) {
    [this.#details, this.#sandbox, this.#page] = [details, sandbox, page];
    this.#button.onclick = () => (this.#isRunning ? this.#stop("Stopped.") : this.#start());
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

  #start() {
    const text = this.#details.querySelector("input").value.trim();
    if (!/^\d{1,16}$/.test(text) || Number(text) > SEED_MAX) return this.#say(`A seed is a number from 0 to ${grouped(SEED_MAX)}.`);
    const { sources, messages } = this.#page.codec();
    this.#runner ??= new Runner(this.#sandbox.guest, this.#sandbox.limits, (report) => this.#hear(report), "fuzz/worker.js");
    this.#fuzzed = this.#key();
    this.#isRunning = true;
    this.#button.textContent = "Stop";
    this.#result.replaceChildren();
    this.#say("Running…");
    return this.#runner.ask({ sources, messages, count: COUNT, seed: Number(text) });
  }

  #hear(report) {
    switch (report.kind) {
      case "fuzzing":
        return this.#say(`${grouped(report.done)} of ${grouped(COUNT)} payloads…`);
      case "fuzzed":
        return this.#show(report);
      case "broken":
        return this.#stop(`It ended: ${report.reason}`);
      default:
        return undefined;
    }
  }

  #show({ done, failures, isTooExpensive }) {
    const early = done === COUNT ? "" : isTooExpensive ? " It ended early, because they need much fuel." : " It ended early, because they take long.";
    const found = failures.length === 0 ? "nothing failed" : `${failures.length} ${failures.length === 1 ? "way" : "different ways"} to fail`;
    this.#end(`${grouped(done)} payloads: ${found}.${early}`);
    this.#result.replaceChildren(...failures.map((found) => this.#item(found)));
  }

  #item({ message: { payload, port }, failure }) {
    const hex = hexOf(payload);
    const add = () => this.#page.add(payload, port);
    return element(
      "li",
      {},
      failureView(failure, this.#page.goTo),
      element("p", {}, element("code", {}, hex === "" ? "(empty)" : hex), ` on port ${port} `, element("button", { type: "button", class: "quiet", onclick: add }, "Add to the payloads")),
    );
  }

  /** Ends what runs. What has ended by itself leaves its worker, with the sandbox, for the next run. */
  #stop(text) {
    this.#runner.stop();
    this.#end(text);
  }

  #end(text) {
    this.#isRunning = false;
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
