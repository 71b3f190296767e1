// Messages for `for await`.

/** How many messages wait for the program. */
const QUEUE_MAX = 1000;

/** Messages as they arrive, from its creation until the loop is left or the client is closed. */
export class MessageStream {
  /** How many messages were dropped, oldest first, because too many were waiting. */
  dropped = 0;

  #queue = [];
  #waiting = [];
  #hasEnded = false;
  #stop;

  /** @param {() => void} stop Called once, at the end. */
  constructor(stop) {
    this.#stop = stop;
  }

  push(devID, message) {
    const reader = this.#waiting.shift();
    if (reader) {
      reader({ done: false, value: [devID, message] });
      return;
    }
    if (this.#queue.length >= QUEUE_MAX) {
      this.#queue.shift();
      this.dropped += 1;
    }
    this.#queue.push([devID, message]);
  }

  /** Ends the stream after the messages that wait. */
  end() {
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      this.#stop();
      this.#waiting.splice(0).forEach((reader) => reader({ done: true, value: undefined }));
    }
  }

  next() {
    const value = this.#queue.shift();
    if (value || this.#hasEnded) {
      return Promise.resolve(value ? { done: false, value } : { done: true, value: undefined });
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  return() {
    this.end();
    this.#queue = [];
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}
