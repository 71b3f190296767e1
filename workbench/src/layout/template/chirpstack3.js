// NAME: payload functions of ChirpStack 3.
//
// They are plain ES5, because the engine of that network knows nothing later. See docs/functions.md of Airlock for all
// that a function may use.

// Turns the bytes that the device sends into fields. `bytes` is an array of numbers from 0 to 255, and `variables` has
// those of the device, as text.
function Decode(fPort, bytes, variables) {
  // Check what arrives: devices send other ports and lengths than their manual says.
  if (fPort !== 1 || bytes.length !== 3) {
    throw new Error("unknown message");
  }
  var temperature = (bytes[0] << 8) | bytes[1];
  // The first bit is the sign of a number with 16 bits.
  if (temperature > 0x7fff) {
    temperature -= 0x10000;
  }
  var offset = variables && variables.offset ? Number(variables.offset) : 0;
  return { temperature: temperature / 10 + offset, battery: bytes[2] };
}

// Turns fields into the bytes that the device receives.
function Encode(fPort, object, variables) {
  return [object.minutes];
}
