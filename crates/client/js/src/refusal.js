// Errors of the broker, in words that say what to do.

/** CONNACK codes of MQTT 3.1.1 and MQTT 5 that another attempt would receive again. */
const FINAL_CODES = {
  1: "the broker does not speak this version of MQTT: set the option `protocolVersion` to 4",
  2: "the broker does not accept this client identifier: set the option `clientId` to another one",
  4: "the broker does not accept this application and credential: check both",
  5: "the broker needs a credential with the right to read or to send messages",
  132: "the broker does not speak this version of MQTT: set the option `protocolVersion` to 4",
  133: "the broker does not accept this client identifier: set the option `clientId` to another one",
  134: "the broker does not accept this application and credential: check both",
  135: "the broker needs a credential with the right to read or to send messages",
  138: "the broker has banned this client: ask its operator",
};

/** Returns why the broker will never accept this connection; undefined if a later attempt may succeed. */
export function finalRefusal(error) {
  const text = FINAL_CODES[error.code];
  return text && explained(text, error);
}

/** Returns why the first connection failed. */
export function unreachable(address, cause) {
  return explained(`cannot reach the MQTT broker at ${address}: check that it runs there and that the address is right`, cause);
}

/** Returns why the broker ended a connection. */
export function disconnected({ reasonCode, properties }) {
  return new Error(`the broker ended the connection: ${properties?.reasonString ?? `reason code ${reasonCode}`}`);
}

/** Returns why a subscription was refused. */
export function subscriptionRefused(filter, cause) {
  return explained(`the broker refused the subscription to \`${filter}\`: the credential needs the right \`messages:up:r\``, cause);
}

/** Returns why a downlink was refused. */
export function downlinkRefused(devID, cause) {
  return explained(`the broker refused the downlink to ${devID}: the credential needs the right \`messages:down:w\``, cause);
}

function explained(text, cause) {
  const error = new Error(cause?.message ? `${text} (${cause.message})` : text, { cause });
  if (cause?.code !== undefined) {
    error.code = cause.code;
  }
  return error;
}
