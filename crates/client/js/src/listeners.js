// Callbacks by event or filter.

/** Callbacks by key. One that is added twice is called twice, as in Node.js. */
export class Listeners {
  #callbacks = new Map();

  /** The keys that have callbacks. */
  get keys() {
    return [...this.#callbacks.keys()];
  }

  add(key, callback) {
    this.#callbacks.set(key, [...this.of(key), callback]);
  }

  /** Removes the callback that was added last, if there is one. */
  remove(key, callback) {
    const callbacks = this.of(key);
    const index = callbacks.lastIndexOf(callback);
    const left = callbacks.filter((_, other) => other !== index);
    if (left.length === 0) {
      this.#callbacks.delete(key);
    } else {
      this.#callbacks.set(key, left);
    }
  }

  of(key) {
    return this.#callbacks.get(key) ?? [];
  }
}

/** Calls each callback. An exception of one is thrown later, so that it affects neither the others nor the connection. */
export function callAll(callbacks, ...values) {
  for (const callback of callbacks) {
    try {
      callback(...values);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
