// Subscriptions at the broker: those that listeners need, and no others.

import { widest } from "./filters.js";

/** At least once. */
const QOS = 1;

/** Keeps the subscriptions of a connection equal to what listeners need. */
export class Subscriptions {
  #mqtt;
  #wanted;
  #onRefusal;
  #held = new Set();
  #isScheduled = false;

  /**
   * @param mqtt The connection.
   * @param wanted Returns the filters that have listeners.
   * @param onRefusal Called with a filter and an error.
   */
  constructor(mqtt, wanted, onRefusal) {
    this.#mqtt = mqtt;
    this.#wanted = wanted;
    this.#onRefusal = onRefusal;
    mqtt.on("connect", () => {
      // Also where the broker kept the session: subscribing again changes nothing.
      this.#held.clear();
      this.#update();
    });
  }

  /** Updates the subscriptions once the running code has changed all its listeners. */
  schedule() {
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      queueMicrotask(() => {
        this.#isScheduled = false;
        this.#update();
      });
    }
  }

  #update() {
    if (!this.#mqtt.connected || this.#mqtt.disconnecting) {
      return;
    }
    const wanted = widest(this.#wanted());
    const added = wanted.filter((filter) => !this.#held.has(filter));
    const removed = [...this.#held].filter((filter) => !wanted.includes(filter));
    this.#held = new Set(wanted);
    // In this order, so that no message is missed in between.
    added.forEach((filter) => this.#subscribe(filter));
    if (removed.length > 0) {
      this.#mqtt.unsubscribe(removed);
    }
  }

  #subscribe(filter) {
    this.#mqtt.subscribe(filter, { qos: QOS }, (error, granted) => {
      const isRefused = granted?.some(({ qos }) => qos >= 128);
      // Without a connection, the next one subscribes again.
      if ((error && this.#mqtt.connected && !this.#mqtt.disconnecting) || isRefused) {
        this.#held.delete(filter);
        this.#onRefusal(filter, error ?? undefined);
      }
    });
  }
}
