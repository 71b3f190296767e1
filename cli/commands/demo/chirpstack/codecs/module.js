// An ES module that reads numbers with Node's Buffer.
import { Buffer } from "buffer";

export function decodeUplink({ bytes }) {
    const buffer = Buffer.from(bytes);
    const count = buffer.readUInt8(0) & 0x0f;
    const litres = Array.from({ length: count }, (_, reading) => buffer.readUInt32LE(1 + 4 * reading));
    return { data: { litres, leak: isLeaking(litres) } };
}

/** Whether water has run between all readings, and a lot of it. */
const isLeaking = (litres) => litres.every((volume, reading) => reading === 0 || volume - litres[reading - 1] > 100);
