// Types of the package.

import type { IClientOptions, IConnackPacket } from "mqtt";

/** An uplink. Members that have no value are missing. */
export interface Uplink {
  app_id?: string;
  dev_id?: string;
  /** The device EUI, in upper-case hexadecimal. */
  hardware_serial?: string;
  port: number;
  counter: number;
  confirmed?: boolean;
  /** Whether the device sent this counter before. */
  is_retry?: boolean;
  /** A `Buffer` in Node.js; null if the device sent no payload. */
  payload_raw: Uint8Array | null;
  /** What the payload functions returned. */
  payload_fields?: Record<string, unknown>;
  /** What `normalizeUplink` returned. */
  normalized_payload?: unknown;
  metadata: Metadata;
  attributes?: Record<string, string>;
}

/** When and how a message was received. */
export interface Metadata {
  /** RFC 3339, UTC; empty if unknown. */
  time: string;
  /** In MHz. */
  frequency?: number;
  modulation?: string;
  data_rate?: string;
  bit_rate?: number;
  /** In nanoseconds. */
  airtime?: number;
  coding_rate?: string;
  gateways?: Gateway[];
  latitude?: number;
  longitude?: number;
  altitude?: number;
  location_source?: string;
  /** The version of the payload functions that ran, if the server is set up to say so. */
  functions_version?: number;
}

/** How one gateway received a message. */
export interface Gateway {
  gtw_id?: string;
  gtw_trusted?: boolean;
  timestamp?: number;
  time: string;
  channel: number;
  /** In dBm. */
  rssi: number;
  /** In dB. */
  snr: number;
  rf_chain: number;
  latitude?: number;
  longitude?: number;
  altitude?: number;
}

/** A join. */
export interface Activation {
  app_eui: string;
  dev_eui: string;
  dev_addr: string;
  metadata: Metadata;
}

/** A downlink in an event. */
export interface Downlink {
  app_id?: string;
  dev_id?: string;
  port: number;
  confirmed?: boolean;
  /** In base64. */
  payload_raw?: string;
  payload_fields?: Record<string, unknown>;
}

/** The messages of `event`, by the name of the event. */
export interface DeviceEvents {
  activations: Activation;
  "activations/errors": Activation & { error: string };
  create: DeviceChange | null;
  update: DeviceChange;
  delete: null;
  "down/scheduled": DownlinkEvent;
  "downlink/scheduled": DownlinkEvent;
  "down/sent": DownlinkSent;
  "downlink/sent": DownlinkSent;
  "down/acks": DownlinkEvent;
  "down/errors": ErrorEvent & { message?: Downlink };
  "up/errors": ErrorEvent;
  silent: SilentEvent;
}

/** A device has sent nothing for a time. The Things Network v2 has no such event. */
export interface SilentEvent {
  app_id: string;
  dev_id: string;
  hardware_serial?: string;
  /** Missing if the device was not heard since it was created, or since its application has such events. */
  last_seen?: string;
  /** In seconds. */
  silent_after_s: number;
  time: string;
}

/** The location of a device that was set, as far as it changed. */
export interface DeviceChange {
  latitude?: number;
  longitude?: number;
  altitude?: number;
  update_at: string;
}

/** What became of a downlink. */
export interface DownlinkEvent {
  message: Downlink;
  /** What the encoder warned of, when the downlink is scheduled. The Things Network v2 has no warnings. */
  warnings?: string[];
  /** When it happened; servers of v2 do not say. */
  time?: string;
  /** The version of the payload functions that failed or warned, if it was they. */
  functions_version?: number;
  /** Names the downlink in all events about it; servers of v2 do not say. */
  downlink_id?: string;
}

/** What went wrong. */
export interface ErrorEvent {
  error: string;
  /** All that went wrong with an uplink, if that is more than one error. */
  errors?: string[];
  /** When it happened; servers of v2 do not say. */
  time?: string;
  /** The version of the payload functions that failed or warned, if it was they. */
  functions_version?: number;
}

/** A downlink on its way to a gateway. */
export interface DownlinkSent extends DownlinkEvent {
  /** The whole frame, in base64, if the network tells it. */
  payload?: string;
  gateway_id: string;
  config: Record<string, unknown>;
}

export type UplinkEvent = "uplink" | "message";
export type ActivationEvent = "activation" | "activations";
export type DeviceEvent = "event" | "events" | "device";
export type DeviceEventName = keyof DeviceEvents;

export type Callback<Message> = (devID: string, message: Message) => void;

/** What `send` takes: bytes, bytes as numbers, bytes in hexadecimal, or fields for the encoder. */
export type Payload = Uint8Array | readonly number[] | string | { readonly [field: string]: unknown };

/** The position in the queue of the device. */
export type Schedule = "replace" | "first" | "last";

/** Options of the `mqtt` package, such as `ca`, `clientId`, `clean`, `reconnectPeriod` and `protocolVersion`. */
export type Options = Omit<IClientOptions, "username" | "password" | "resubscribe" | "reconnectOnConnackError">;

/** Messages for `for await`. */
export interface MessageStream<Message> extends AsyncIterableIterator<[devID: string, message: Message]> {
  /** How many messages were dropped, oldest first, because more than 1000 were waiting. */
  readonly dropped: number;
}

/** Receives the messages of an application and sends downlinks to its devices. */
export class DataClient {
  /**
   * Opens the connection.
   *
   * @param credential An access key or an access token.
   * @param mqttAddress `host:port`, or a URL with `mqtt://`, `mqtts://`, `ws://` or `wss://`.
   */
  constructor(appID: string, credential: string, mqttAddress: string, options?: Options);

  /** Listens to uplinks of all devices. */
  on(event: UplinkEvent, callback: Callback<Uplink>): void;
  /** Listens to uplinks of one device; `+` means all devices. */
  on(event: UplinkEvent, devID: string, callback: Callback<Uplink>): void;
  /** Listens to single fields, such as `temperature` or `gps/latitude`. */
  on(event: UplinkEvent, devID: string, ...fields: [string, ...string[], Callback<unknown>]): void;
  /** Listens to joins. */
  on(event: ActivationEvent, callback: Callback<Activation>): void;
  on(event: ActivationEvent, devID: string, callback: Callback<Activation>): void;
  /** Listens to all events of devices. */
  on(event: DeviceEvent, callback: Callback<DeviceEvents[DeviceEventName]>): void;
  on(event: DeviceEvent, devID: string, callback: Callback<DeviceEvents[DeviceEventName]>): void;
  /** Listens to the events with these names. */
  on<Name extends DeviceEventName>(event: DeviceEvent, devID: string, name: Name, callback: Callback<DeviceEvents[Name]>): void;
  on(event: DeviceEvent, devID: string, ...names: [DeviceEventName, ...DeviceEventName[], Callback<DeviceEvents[DeviceEventName]>]): void;
  /** The first connection failed, or the broker refused something. Without a listener, the error is thrown. */
  on(event: "error", callback: (error: Error) => void): void;
  on(event: "connect", callback: (connack: IConnackPacket) => void): void;
  /** The connection was lost. The client connects again. */
  on(event: "disconnect", callback: (cause?: Error) => void): void;
  /** The client tries to connect again. */
  on(event: "reconnect", callback: () => void): void;
  /** An attempt to connect failed. The client tries again. */
  on(event: "close", callback: (cause?: Error) => void): void;

  /** Stops what `on` started with the same arguments. */
  off(event: UplinkEvent, callback: Callback<Uplink>): void;
  off(event: UplinkEvent, devID: string, callback: Callback<Uplink>): void;
  off(event: UplinkEvent, devID: string, ...fields: [string, ...string[], Callback<unknown>]): void;
  off(event: ActivationEvent, callback: Callback<Activation>): void;
  off(event: ActivationEvent, devID: string, callback: Callback<Activation>): void;
  off(event: DeviceEvent, callback: Callback<DeviceEvents[DeviceEventName]>): void;
  off(event: DeviceEvent, devID: string, callback: Callback<DeviceEvents[DeviceEventName]>): void;
  off<Name extends DeviceEventName>(event: DeviceEvent, devID: string, name: Name, callback: Callback<DeviceEvents[Name]>): void;
  off(event: DeviceEvent, devID: string, ...names: [DeviceEventName, ...DeviceEventName[], Callback<DeviceEvents[DeviceEventName]>]): void;
  off(event: "error" | "disconnect" | "close", callback: (error: Error) => void): void;
  off(event: "connect", callback: (connack: IConnackPacket) => void): void;
  off(event: "reconnect", callback: () => void): void;

  /** The messages that `on` would call back with, for `for await`. */
  stream(event: UplinkEvent, devID?: string): MessageStream<Uplink>;
  stream(event: UplinkEvent, devID: string, ...fields: [string, ...string[]]): MessageStream<unknown>;
  stream(event: ActivationEvent, devID?: string): MessageStream<Activation>;
  stream(event: DeviceEvent, devID?: string): MessageStream<DeviceEvents[DeviceEventName]>;
  stream<Name extends DeviceEventName>(event: DeviceEvent, devID: string, ...names: [Name, ...Name[]]): MessageStream<DeviceEvents[Name]>;

  /**
   * Sends a downlink.
   *
   * Arguments that are not valid throw. The promise is fulfilled when the broker has acknowledged the downlink, and
   * rejected when the broker refuses it or the client is closed before. It need not be awaited: refusals are also
   * `error` events.
   *
   * @param port By default 1.
   * @param confirmed Whether the device has to acknowledge the downlink; by default not.
   * @param schedule By default `replace`.
   */
  send(devID: string, payload: Payload, port?: number, confirmed?: boolean, schedule?: Schedule): Promise<void>;

  /**
   * Closes the connection for good.
   *
   * @param force Do not wait for the acknowledgements of downlinks. Without it, closing waits up to 10 seconds.
   * @param callback Called when the connection is closed.
   */
  close(force?: boolean, callback?: () => void): Promise<void>;
  close(callback: () => void): Promise<void>;

  /** An alias of `close`. */
  end(force?: boolean, callback?: () => void): Promise<void>;
  end(callback: () => void): Promise<void>;
}
