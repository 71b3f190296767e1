// From the names of events to MQTT filters.

import { checkId } from "./id.js";

/** All devices, where a device's id can stand. */
const ALL_DEVICES = "+";

/** What happens to devices, as the last levels of a topic. */
const DEVICE_EVENTS = [
  "activations",
  "activations/errors",
  "create",
  "update",
  "delete",
  "down/scheduled",
  "down/sent",
  "down/acks",
  "down/errors",
  "up/errors",
  "silent",
];

/** Names that the documentation of The Things Network had for events. */
const DEVICE_EVENT_ALIASES = { "downlink/scheduled": "down/scheduled", "downlink/sent": "down/sent" };

/** From the names and aliases of events to the function that returns their filters below a device. */
const EVENTS = {
  uplink: uplinkLevels,
  message: uplinkLevels,
  activation: activationLevels,
  activations: activationLevels,
  event: eventLevels,
  events: eventLevels,
  device: eventLevels,
};

/** The names of the events that bring messages. */
export const MESSAGE_EVENTS = Object.keys(EVENTS);

/**
 * Returns the MQTT filters of an event: `rest` is empty, or a device's id (or `+`) and more names.
 */
export function filtersOf(appID, event, rest) {
  const [devID = ALL_DEVICES, ...names] = rest;
  if (devID !== ALL_DEVICES) {
    checkId("device id", devID);
  } else if (rest.length > 0 && typeof rest[0] !== "string") {
    throw new TypeError("the device id is missing: give one, or `+` for all devices");
  }
  return EVENTS[event](names).map((levels) => `${appID}/devices/${devID}/${levels}`);
}

function uplinkLevels(fields) {
  for (const field of fields) {
    if (typeof field !== "string" || field === "" || /[+#\0]/.test(field)) {
      throw new TypeError(`field \`${String(field)}\` not valid: must be a name, or a path such as \`gps/latitude\``);
    }
  }
  return fields.length === 0 ? ["up"] : fields.map((field) => `up/${field}`);
}

function activationLevels(names) {
  if (names.length > 0) {
    throw new TypeError("activations have no further filter: listen to `event` with `activations/errors` for failed joins");
  }
  return ["events/activations"];
}

function eventLevels(names) {
  const levels = names.map((name) => DEVICE_EVENT_ALIASES[name] ?? name);
  for (const name of levels) {
    if (!DEVICE_EVENTS.includes(name)) {
      throw new TypeError(`\`${String(name)}\` is not an event of a device: must be one of ${DEVICE_EVENTS.join(", ")}`);
    }
  }
  return levels.length === 0 ? ["events/#"] : levels.map((name) => `events/${name}`);
}

/** Whether a filter matches each topic that another filter, or topic, matches. */
export function covers(wide, narrow) {
  const [levels, others] = [wide.split("/"), narrow.split("/")];
  for (const [index, level] of levels.entries()) {
    if (level === "#") {
      return true;
    }
    const other = others[index];
    if (other === undefined || other === "#" || (level !== "+" && level !== other)) {
      return false;
    }
  }
  return levels.length === others.length;
}

/**
 * Returns the filters that no other one covers.
 *
 * Brokers may send a message once for each of a client's subscriptions that match it.
 */
export function widest(filters) {
  return filters.filter((filter) => !filters.some((other) => other !== filter && covers(other, filter)));
}
