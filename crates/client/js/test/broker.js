// A broker that records packets and answers as a test wants.

import { once } from "node:events";
import { createServer } from "node:net";

import mqttPacket from "mqtt-packet";

const VERSION = { protocolVersion: 5 };

/** How the broker answers unless a test says otherwise. Without a packet, it does not answer. */
const ANSWERS = {
  connect: () => ({ cmd: "connack", reasonCode: 0, sessionPresent: false }),
  subscribe: ({ messageId, subscriptions }) => ({ cmd: "suback", messageId, granted: subscriptions.map(({ qos }) => qos) }),
  unsubscribe: ({ messageId, unsubscriptions }) => ({ cmd: "unsuback", messageId, granted: unsubscriptions.map(() => 0) }),
  publish: ({ messageId }) => ({ cmd: "puback", messageId, reasonCode: 0 }),
};

export class Broker {
  #answers;
  #server;
  #sockets = new Set();
  #packets = [];
  #waiting = [];

  /** Starts a broker for a test, on a free port unless one is given. */
  static async start(context, answers = {}, port = 0) {
    const broker = new Broker();
    broker.#answers = { ...ANSWERS, ...answers };
    broker.#server = createServer((socket) => broker.#serve(socket));
    await once(broker.#server.listen(port, "127.0.0.1"), "listening");
    context.after(() => broker.stop());
    return broker;
  }

  get port() {
    return this.#server.address().port;
  }

  get address() {
    return `127.0.0.1:${this.port}`;
  }

  /** Returns the next packet from a client that is no ping and no acknowledgement. */
  async next() {
    return this.#packets.shift() ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Publishes JSON to all clients, at least once. */
  publish(topic, value) {
    this.send({ cmd: "publish", topic, payload: JSON.stringify(value), qos: 1, messageId: 7, dup: false, retain: false });
  }

  send(packet) {
    this.#sockets.forEach((socket) => socket.write(mqttPacket.generate(packet, VERSION)));
  }

  /** Breaks all connections. */
  drop() {
    this.#sockets.forEach((socket) => socket.destroy());
  }

  async stop() {
    if (this.#server.listening) {
      const closed = once(this.#server.close(), "close");
      this.drop();
      await closed;
    }
  }

  #serve(socket) {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {});
    const parser = mqttPacket.parser(VERSION);
    parser.on("packet", (packet) => {
      this.#record(packet);
      const answer = this.#answers[packet.cmd]?.(packet);
      if (answer) {
        socket.write(mqttPacket.generate(answer, VERSION));
      }
    });
    socket.on("data", (bytes) => parser.parse(bytes));
  }

  #record(packet) {
    if (["pingreq", "puback"].includes(packet.cmd)) {
      return;
    }
    const reader = this.#waiting.shift();
    reader ? reader(packet) : this.#packets.push(packet);
  }
}
