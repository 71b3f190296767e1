// NAME: a codec of TS013, for ChirpStack 4, The Things Stack, Actility and Airlock.
//
// It is plain ES5, so that it also runs where the engine is old. See docs/functions.md of Airlock for all that a
// function may use.

// Turns the bytes that the device sends into fields.
//
//   input.bytes     an array of numbers from 0 to 255
//   input.fPort     the port, from 1 to 223
//   input.recvTime  a Date
function decodeUplink(input) {
  // Check what arrives: devices send other ports and lengths than their manual says.
  if (input.fPort !== 1 || input.bytes.length !== 3) {
    return { errors: ["unknown message"] };
  }
  var temperature = (input.bytes[0] << 8) | input.bytes[1];
  // The first bit is the sign of a number with 16 bits.
  if (temperature > 0x7fff) {
    temperature -= 0x10000;
  }
  var result = { data: { temperature: temperature / 10, battery: input.bytes[2] } };
  if (input.bytes[2] < 10) {
    result.warnings = ["battery low"];
  }
  return result;
}

// Turns fields into the bytes that the device receives.
//
//   input.data      the fields of the downlink
function encodeDownlink(input) {
  var minutes = input.data.minutes;
  if (!(minutes >= 1 && minutes <= 255)) {
    return { errors: ["minutes must be from 1 to 255"] };
  }
  return { fPort: 2, bytes: [minutes] };
}

// Turns those bytes back into fields, so that networks can show what they send.
function decodeDownlink(input) {
  return { data: { minutes: input.bytes[0] } };
}
