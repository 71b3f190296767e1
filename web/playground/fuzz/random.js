// Randomness that is the same in every browser and in the program: `workbench/src/fuzz/random.rs` in JavaScript.

const MASK = (1n << 64n) - 1n;

const rotate = (number, bits) => ((number << bits) | (number >> (64n - bits))) & MASK;

/** The published generator xoshiro256++, whose seed SplitMix64 spreads. */
export class Random {
  #state;

  constructor(seed) {
    let state = BigInt.asUintN(64, BigInt(seed));
    this.#state = Array.from({ length: 4 }, () => {
      state = (state + 0x9e3779b97f4a7c15n) & MASK;
      let mixed = ((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
      mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & MASK;
      return mixed ^ (mixed >> 31n);
    });
  }

  /** A number below `end`; 0 if that is 0. */
  below(end) {
    return Number((this.#next() * BigInt(end)) >> 64n);
  }

  byte() {
    return Number(this.#next() & 0xffn);
  }

  /** True once in `times`. */
  onceIn(times) {
    return this.below(times) === 0;
  }

  bytes(count) {
    return Array.from({ length: count }, () => this.byte());
  }

  /** One of `values`. */
  pick(values) {
    return values[this.below(values.length)];
  }

  #next() {
    const [a, b, c, d] = this.#state;
    const number = (rotate((a + d) & MASK, 23n) + a) & MASK;
    const [third, fourth] = [c ^ a, d ^ b];
    this.#state = [a ^ fourth, b ^ third, third ^ ((b << 17n) & MASK), rotate(fourth, 45n)];
    return number;
  }
}
