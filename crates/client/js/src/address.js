// Addresses of MQTT brokers: `host:port`, as handlers announce them, or a URL.

const EXPECTED = "host:port, mqtt://, mqtts://, ws:// or wss://";

/** Whether this is a browser, which reaches brokers only over WebSocket. */
const IS_BROWSER = typeof globalThis.document === "object" || typeof globalThis.importScripts === "function";

/** Returns the address as a URL. */
export function brokerUrl(address, isBrowser = IS_BROWSER) {
  const text = typeof address === "string" && !address.includes("://") ? `mqtt://${address}` : address;
  let url;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError(`address \`${address}\` not valid: must be ${EXPECTED}`);
  }
  if (!["mqtt:", "mqtts:", "ws:", "wss:"].includes(url.protocol) || url.hostname === "" || url.username !== "") {
    throw new TypeError(`address \`${address}\` not valid: must be ${EXPECTED}`);
  }
  if (isBrowser && url.protocol.startsWith("mqtt")) {
    throw new TypeError(`browsers cannot connect to \`${address}\`: give the broker's ws:// or wss:// address`);
  }
  return url.href;
}
