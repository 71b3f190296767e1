// Base64, in Node.js and in browsers.

/** Encodes bytes. */
export function encodeBase64(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Decodes a text into a `Buffer`, or into a `Uint8Array` where there are no buffers. */
export function decodeBase64(text) {
  if (globalThis.Buffer) {
    return globalThis.Buffer.from(text, "base64");
  }
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
