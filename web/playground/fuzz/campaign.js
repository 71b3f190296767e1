// Runs random payloads through a decoder, as `workbench/src/fuzz/campaign.rs` does, and keeps the smallest of each way to
// fail. The same seed, codec and messages give the same failures.

import { mutate, randomPayload } from "./mutate.js";
import { Random } from "./random.js";
import { shrink } from "./shrink.js";

/** The longest payload of a LoRaWAN message. */
const LENGTH_MAX = 242;
/** Failures that are told apart: who has so many needs no more of them. */
const FAILURES_MAX = 3;
/** Messages of a port that are kept to be changed further, besides those that were there. */
const KEPT_MAX = 256;
/** Different amounts of fuel that are remembered. */
const PATHS_MAX = 1 << 16;
/** Fuel for each payload, on average: codecs that need more get fewer payloads. */
const FUEL_PER_PAYLOAD = 2_000_000;
/** Calls, and fuel, for making one payload smaller. */
const SHRINK_CALLS_MAX = 5_000;
const SHRINK_FUEL_MAX = 10_000_000_000;
/** The seed of `Math.random`. */
const SEED = 1;

/** The errors that the engine throws by itself. */
const ENGINE_ERRORS = ["TypeError", "ReferenceError", "RangeError", "SyntaxError", "URIError", "EvalError", "InternalError"];

export class Campaign {
  #count;
  #random;
  #run;
  #targets;
  #siteOf;
  #paths = new Set();
  /** The smallest message of each failure, by its site. */
  #found = new Map();
  #fuel = 0;
  done = 0;

  /**
   * A campaign of `count` payloads. `messages` are those to begin with, each with `payload`, `port` and `timeMs`; `run`
   * runs one, and `siteOf` tells failures apart: null for one that is none.
   */
  constructor({ messages, count, seed }, run, siteOf) {
    [this.#count, this.#random, this.#run, this.#siteOf] = [count, new Random(seed), run, siteOf];
    const ports = [...new Set(messages.map(({ port }) => port))];
    this.#targets = ports.map((port) => {
      const own = messages.filter((message) => message.port === port).map((message) => ({ ...message, payload: [...message.payload] }));
      return { first: own.length, kept: [...own, { ...own[0], payload: [] }] };
    });
  }

  /** A campaign for the decoder of `sources`, which runs in a sandbox; throws a `Failure` if they cannot be loaded. */
  static of(sandbox, sources, plan) {
    const functions = sandbox.load(sources);
    const isTs013 = functions.dialect("decoder") === "ts013";
    const decoder = { entryPoint: "singleFunction", singleFunction: "uplink", seed: SEED, extra: "" };
    const run = (message) => sandbox.call(functions, { ...decoder, ...message, payload: Uint8Array.from(message.payload) });
    return new Campaign(plan, run, (failure) => siteOf(failure, sources.text, isTs013));
  }

  /** Whether messages need too much fuel for all. */
  get isTooExpensive() {
    return this.#fuel > FUEL_PER_PAYLOAD * this.#count;
  }

  /** The failures so far, each with the smallest message that was found. */
  get failures() {
    return [...this.#found.values()];
  }

  /** Runs the messages to begin with, and then random ones; yields after each. */
  *steps() {
    for (const [place, { kept }] of this.#targets.entries()) {
      for (const message of [...kept]) yield this.#message(place, message);
    }
    for (; this.done < this.#count && !this.isTooExpensive; this.done += 1) {
      const place = this.#random.below(this.#targets.length);
      yield this.#message(place, this.#next(place));
    }
  }

  /** Makes the payload of each failure smaller, until `isOver`. */
  shrink(isOver = () => false) {
    for (const [site, found] of this.#found) {
      let [calls, fuel] = [0, 0];
      const holds = (payload) => {
        if (isOver() || calls >= SHRINK_CALLS_MAX || fuel > SHRINK_FUEL_MAX) return false;
        const { failure, fuel: used } = this.#run({ ...found.message, payload });
        [calls, fuel] = [calls + 1, fuel + used];
        if (failure === null || this.#siteOf(failure) !== site) return false;
        found.failure = failure;
        return true;
      };
      found.message = { ...found.message, payload: shrink(found.message.payload, holds) };
    }
  }

  /** A message that was not there before, most probably. */
  #next(place) {
    const { kept } = this.#targets[place];
    const [base, other] = [this.#random.pick(kept), this.#random.pick(kept)];
    const payload = this.#random.onceIn(10) ? randomPayload(this.#random, LENGTH_MAX) : mutate(this.#random, base.payload, other.payload, LENGTH_MAX);
    return { ...base, payload };
  }

  #message(place, message) {
    const { failure, fuel } = this.#run(message);
    this.#fuel += fuel;
    // Other fuel means another path through the function.
    const path = `${place} ${fuel}`;
    if (this.#paths.size < PATHS_MAX && !this.#paths.has(path)) {
      this.#paths.add(path);
      this.#keep(this.#targets[place], message);
    }
    const site = failure === null ? null : this.#siteOf(failure);
    if (site === null) return;
    const known = this.#found.get(site);
    const isNew = known === undefined && this.#found.size < FAILURES_MAX;
    if (isNew || (known !== undefined && isSmaller(message.payload, known.message.payload))) this.#found.set(site, { message, failure });
  }

  /** Keeps a message; from some number on in place of another one that was found. */
  #keep({ first, kept }, message) {
    if (kept.length < KEPT_MAX + first) kept.push(message);
    else kept[first + this.#random.below(KEPT_MAX)] = message;
  }
}

/** Shorter payloads are smaller, and of those with the same length the ones with smaller bytes. */
function isSmaller(one, other) {
  if (one.length !== other.length) return one.length < other.length;
  const differs = one.findIndex((byte, index) => byte !== other[index]);
  return differs >= 0 && one[differs] < other[differs];
}

/**
 * Tells failures of a source apart, by the rules of `workbench/src/run/fault.rs`: by kind, line and class. Null for what
 * the author means to throw in a dialect that has no `errors`.
 */
function siteOf({ kind, line, column, message }, text, isTs013) {
  if (kind === "output") return `output ${message}`;
  if (kind !== "thrown") return kind;
  if (!isTs013 && isDeliberate({ line, column, message }, text)) return null;
  return `thrown ${line} ${classOf(message)}`;
}

function classOf(message) {
  const [name] = message.split(/[:\n]/);
  return /^[A-Za-z0-9]*Error$/.test(name) ? name : "an exception";
}

function isDeliberate({ line, column, message }, text) {
  if (!ENGINE_ERRORS.includes(classOf(message))) return true;
  const thrown = (text.split("\n")[(line ?? 0) - 1] ?? "").slice(Math.max(0, (column ?? 1) - 1));
  return thrown.startsWith("throw") || (thrown.startsWith("new ") && thrown.includes("Error("));
}
