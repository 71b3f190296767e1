// Payloads as people write them.

/** Number of bytes that become text at once. */
const ARGUMENTS_MAX = 8192;

/** The bytes of hexadecimal digits, which may be in groups; null if the text is something else. */
export function bytesOfHex(text) {
  const digits = digitsOf(text);
  if (digits === null || digits.length % 2 !== 0) return null;
  return Uint8Array.from(digits.match(/../g) ?? [], (byte) => parseInt(byte, 16));
}

/** Returns true if a text is hexadecimal but for a digit that is missing, or one too many. Base64 is rarely such a text. */
export function isOddHex(text) {
  const digits = digitsOf(text);
  return digits !== null && digits.length % 2 === 1;
}

function digitsOf(text) {
  const digits = text.trim().replace(/^0x/i, "").replace(/[\s:,-]+(?:0x)?/gi, "");
  return /[^0-9a-f]/i.test(digits) ? null : digits;
}

/** The bytes of Base64 in the usual alphabet or that of URLs; null if the text is something else. */
export function bytesOfBase64(text) {
  const letters = text.trim().replace(/-/g, "+").replace(/_/g, "/");
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(letters) || letters.replace(/=+$/, "").length % 4 === 1) return null;
  try {
    return Uint8Array.from(atob(letters), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

/** A time with its date and zone, in milliseconds since 1970; null if the text is something else. */
export function timeOf(text) {
  const [, date] = /^(\d{4}-\d\d-\d\d)[T ](?:[01]\d|2[0-3]):\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i.exec(text.trim()) ?? [];
  const time = date !== undefined && isDate(date) ? Date.parse(text.trim()) : NaN;
  return Number.isNaN(time) ? null : time;
}

/** Some browsers take the 30th of February for a day in March. */
function isDate(date) {
  const day = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(day) && new Date(day).toISOString().startsWith(date);
}

export function hexOf(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function base64Of(bytes) {
  let binary = "";
  // A call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += ARGUMENTS_MAX) binary += String.fromCharCode(...bytes.slice(at, at + ARGUMENTS_MAX));
  return btoa(binary);
}
