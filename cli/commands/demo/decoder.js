// Port 1: temperature in hundredths of a degree, relative humidity in halves of a percent, battery in 10 mV above 2 V.
// Port 2: litres since the start, flow in tenths of a litre per minute, flags.
function Decoder(bytes, port) {
  if (port === 1) {
    return {
      temperature: int16(bytes, 0) / 100,
      humidity: bytes[2] / 2,
      battery: 2000 + bytes[3] * 10,
    };
  }
  if (port === 2) {
    return {
      volume: (bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3]) >>> 0,
      flow: (bytes[4] << 8 | bytes[5]) / 10,
      leak: (bytes[6] & 1) !== 0,
      battery: 2000 + bytes[7] * 10,
    };
  }
  throw new Error("port " + port + " is not used by these devices");
}

function int16(bytes, at) {
  return (bytes[at] << 24 | bytes[at + 1] << 16) >> 16;
}
