// The client of one application.

import mqtt from "mqtt";

import { brokerUrl } from "./address.js";
import { decodeBase64 } from "./base64.js";
import { downlinkJson } from "./downlink.js";
import { MESSAGE_EVENTS, covers, filtersOf } from "./filters.js";
import { checkId } from "./id.js";
import { Listeners, callAll } from "./listeners.js";
import { MessageStream } from "./message_stream.js";
import { disconnected, downlinkRefused, finalRefusal, subscriptionRefused, unreachable } from "./refusal.js";
import { Subscriptions } from "./subscriptions.js";

/** The events of the connection. */
const CONNECTION_EVENTS = ["error", "connect", "disconnect", "reconnect", "close"];
/** How many downlinks may wait for the broker. */
const DOWNLINKS_MAX = 1000;
/** How long closing without force waits for the broker. */
const CLOSE_WAIT_MS = 10_000;
/** The options of the library that applications cannot set, because this client depends on them. */
const OPTIONS = { resubscribe: false, reconnectOnConnackError: true };

/** Receives the messages of an application and sends downlinks to its devices. */
export class DataClient {
  #appID;
  #address;
  #mqtt;
  #subscriptions;
  #connectionListeners = new Listeners();
  #messageListeners = new Listeners();
  #streams = new Set();
  #unacknowledged = new Set();
  #isConnected = false;
  #isFirstAttempt = true;
  #cause;
  #closed;

  constructor(appID, credential, mqttAddress, options = {}) {
    checkId("application id", appID);
    if (typeof credential !== "string" || credential === "") {
      throw new TypeError("the credential is missing: give an access key or an access token");
    }
    const url = brokerUrl(mqttAddress);
    this.#appID = appID;
    this.#address = mqttAddress;
    const login = { username: appID, password: credential };
    this.#mqtt = mqtt.connect(url, { protocolVersion: 5, ...options, ...login, ...OPTIONS });
    const refused = (filter, cause) => this.#emit("error", subscriptionRefused(filter, cause));
    this.#subscriptions = new Subscriptions(this.#mqtt, () => this.#messageListeners.keys, refused);
    this.#mqtt.on("connect", (connack) => this.#onConnect(connack));
    this.#mqtt.on("close", () => this.#onClose());
    this.#mqtt.on("reconnect", () => this.#emit("reconnect"));
    this.#mqtt.on("error", (error) => this.#onError(error));
    this.#mqtt.on("disconnect", (packet) => (this.#cause = disconnected(packet)));
    this.#mqtt.on("message", (topic, payload) => this.#onMessage(topic, payload));
  }

  on(event, ...rest) {
    const { listeners, keys, callback } = this.#listenersOf(event, rest);
    keys.forEach((key) => listeners.add(key, callback));
    this.#subscriptions.schedule();
  }

  off(event, ...rest) {
    const { listeners, keys, callback } = this.#listenersOf(event, rest);
    keys.forEach((key) => listeners.remove(key, callback));
    this.#subscriptions.schedule();
  }

  stream(event, ...rest) {
    const callback = (devID, message) => stream.push(devID, message);
    if (!MESSAGE_EVENTS.includes(event)) {
      throw new TypeError(`\`${String(event)}\` has no messages: must be one of ${MESSAGE_EVENTS.join(", ")}`);
    }
    if (this.#closed) {
      throw new Error("the client is closed: create another one");
    }
    const stream = new MessageStream(() => {
      this.#streams.delete(stream);
      this.off(event, ...rest, callback);
    });
    this.on(event, ...rest, callback);
    this.#streams.add(stream);
    return stream;
  }

  send(devID, payload, port = 1, confirmed = false, schedule = "replace") {
    checkId("device id", devID);
    const message = downlinkJson(payload, port, confirmed, schedule);
    if (this.#closed) {
      throw new Error("the client is closed: create another one");
    }
    if (this.#unacknowledged.size >= DOWNLINKS_MAX) {
      throw new Error(`${DOWNLINKS_MAX} downlinks wait for the broker: send fewer, or wait for those before`);
    }
    const sent = this.#publish(devID, message);
    // Programs that do not wait learn from the `error` event what the broker refused.
    sent.catch(() => {});
    return sent;
  }

  close(force = false, callback = undefined) {
    if (typeof force === "function") {
      return this.close(false, force);
    }
    this.#closed ??= this.#end(Boolean(force));
    this.#streams.forEach((stream) => stream.end());
    return callback ? this.#closed.then(() => callAll([callback])) : this.#closed;
  }

  end(force, callback) {
    return this.close(force, callback);
  }

  /** Ends the connection, after the downlinks that wait for the broker unless `force` is set. */
  async #end(force) {
    let timer;
    const deadline = new Promise((resolve) => (timer = setTimeout(resolve, CLOSE_WAIT_MS)));
    if (!force) {
      await Promise.race([Promise.allSettled([...this.#unacknowledged].map(({ sent }) => sent)), deadline]);
    }
    const isForced = force || this.#unacknowledged.size > 0;
    await Promise.race([new Promise((resolve) => this.#mqtt.end(isForced, resolve)), deadline]);
    clearTimeout(timer);
    this.#mqtt.stream?.destroy();
    this.#unacknowledged.forEach(({ reject }) => reject(new Error("the client was closed before the broker answered")));
  }

  /** What `on` and `off` change, after checking their arguments. */
  #listenersOf(event, rest) {
    const callback = rest.at(-1);
    if (typeof callback !== "function") {
      throw new TypeError(`the callback of \`${String(event)}\` is missing: give a function as the last argument`);
    }
    const filters = rest.slice(0, -1);
    if (CONNECTION_EVENTS.includes(event)) {
      if (filters.length > 0) {
        throw new TypeError(`\`${event}\` concerns the connection: give only a callback`);
      }
      return { listeners: this.#connectionListeners, keys: [event], callback };
    }
    if (!MESSAGE_EVENTS.includes(event)) {
      const known = [...MESSAGE_EVENTS, ...CONNECTION_EVENTS].join(", ");
      throw new TypeError(`\`${String(event)}\` is not an event: must be one of ${known}`);
    }
    return { listeners: this.#messageListeners, keys: filtersOf(this.#appID, event, filters), callback };
  }

  #publish(devID, message) {
    const downlink = {};
    downlink.sent = new Promise((resolve, reject) => {
      downlink.reject = reject;
      this.#mqtt.publish(`${this.#appID}/devices/${devID}/down`, message, { qos: 1 }, (error) => {
        this.#unacknowledged.delete(downlink);
        error ? reject(this.#notSent(devID, error)) : resolve();
      });
    });
    this.#unacknowledged.add(downlink);
    return downlink.sent;
  }

  #notSent(devID, error) {
    if (!(error.code >= 128)) {
      return error;
    }
    const refusal = downlinkRefused(devID, error);
    this.#emit("error", refusal);
    return refusal;
  }

  #onConnect(connack) {
    this.#isConnected = true;
    this.#isFirstAttempt = false;
    this.#cause = undefined;
    this.#emit("connect", connack);
  }

  #onError(error) {
    // What ends the connection, or the attempt, is told with the event that follows.
    this.#cause = error;
    const refusal = this.#isConnected ? undefined : finalRefusal(error);
    if (this.#closed) {
      return;
    }
    if (refusal) {
      this.close(true);
      this.#emit("error", refusal);
    } else if (this.#isConnected && typeof error.code !== "string") {
      this.#emit("error", error);
    }
  }

  #onClose() {
    const [wasConnected, cause] = [this.#isConnected, this.#cause];
    this.#isConnected = false;
    this.#cause = undefined;
    if (this.#closed) {
      return;
    }
    if (wasConnected) {
      this.#emit("disconnect", cause);
      return;
    }
    const wasFirst = this.#isFirstAttempt;
    this.#isFirstAttempt = false;
    this.#emit("close", cause);
    if (wasFirst) {
      this.#emit("error", unreachable(this.#address, cause));
    }
  }

  #onMessage(topic, payload) {
    let message;
    try {
      message = JSON.parse(new TextDecoder().decode(payload));
    } catch (cause) {
      this.#emit("error", new Error(`the message on \`${topic}\` is not JSON`, { cause }));
      return;
    }
    if (typeof message?.payload_raw === "string") {
      message.payload_raw = decodeBase64(message.payload_raw);
    }
    const devID = topic.split("/")[2];
    for (const filter of this.#messageListeners.keys.filter((filter) => covers(filter, topic))) {
      callAll(this.#messageListeners.of(filter), devID, message);
    }
  }

  #emit(event, ...values) {
    const callbacks = this.#connectionListeners.of(event);
    if (event === "error" && callbacks.length === 0) {
      // As in Node.js: an error that nobody listens to is not lost.
      queueMicrotask(() => {
        throw values[0];
      });
    }
    callAll(callbacks, ...values);
  }
}
