// Adds up what steps cost while a message runs. Mirrors `runtime/src/profile/recorder.rs`.
//
// Fuel is what was used between two steps. It counts for the first of them, or, when that one has returned since, for the
// step that called. What is used before the first step and after the last one is the sandbox's own work, unless a limit
// ended the message before its function had returned.

import { CALLER, FIRST } from "./steps.js";

export class Recorder {
  #steps;
  #fuel;
  #runs;
  /** The functions that run: the stack pointer of each while its own steps run, its place, and its step. */
  #frames = [];
  /** The fuel that was left at the last step. */
  #left;
  /** The fuel that the sandbox itself used. */
  outside = 0;

  /** Records a message that begins with this much fuel. */
  constructor(steps, left) {
    [this.#steps, this.#left] = [steps, left];
    this.#fuel = new Float64Array(steps.lines.length);
    this.#runs = new Float64Array(steps.lines.length);
  }

  /** Notes that the step at `address` is next. */
  step(left, stackPointer, address) {
    const step = this.#steps.find(address);
    // A step of a function that is built in counts for the step that called it.
    if (step === undefined) return;
    const place = this.#steps.functions[step];
    this.#leave(stackPointer, place, this.#steps.isFirst[step]);
    this.#charge(left);
    const frame = this.#frames.at(-1);
    if (frame !== undefined && frame.stackPointer === stackPointer) frame.step = step;
    else this.#frames.push({ stackPointer, place, step });
    this.#runs[step] += 1;
  }

  /** Ends the message with this much fuel left, perhaps cut off by a limit. */
  finish(left, isCutOff) {
    const isRunning = (frame) => this.#steps.exits[frame.step] !== CALLER;
    this.#frames.length = isCutOff ? this.#frames.findLastIndex(isRunning) + 1 : 0;
    this.#charge(left);
  }

  /** The lines that ran, with the fuel that each used and how often it ran. */
  get lines() {
    const lines = new Map();
    this.#steps.lines.forEach((line, step) => {
      const { fuel, runs } = lines.get(line) ?? { fuel: 0, runs: 0 };
      lines.set(line, { line, fuel: fuel + this.#fuel[step], runs: Math.max(runs, this.#runs[step]) });
    });
    return [...lines.values()].filter(({ runs }) => runs > 0).sort((one, other) => one.line - other.line);
  }

  /**
   * Ends the functions that have returned. A first step is that of another call, from the same place, unless the step
   * before jumps there.
   */
  #leave(stackPointer, place, isFirst) {
    for (let frame = this.#frames.at(-1); frame !== undefined; frame = this.#frames.at(-1)) {
      const isCall = isFirst && this.#steps.exits[frame.step] !== FIRST;
      const hasReturned = frame.stackPointer < stackPointer || (frame.stackPointer === stackPointer && (frame.place !== place || isCall));
      if (!hasReturned) return;
      this.#frames.pop();
    }
  }

  #charge(left) {
    // A message that has run out of fuel is charged what it had.
    const fuel = this.#left - Math.max(left, 0);
    this.#left = Math.max(left, 0);
    const frame = this.#frames.at(-1);
    if (frame === undefined) this.outside += fuel;
    else this.#fuel[frame.step] += fuel;
  }
}
