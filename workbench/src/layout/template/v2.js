// NAME: payload functions of The Things Network 2.
//
// They are plain ES5, because the engine of that network knows nothing later. See docs/functions.md of Airlock for all
// that a function may use.

// Turns the bytes that the device sends into fields. `bytes` is an array of numbers from 0 to 255.
function Decoder(bytes, port) {
  // Check what arrives: devices send other ports and lengths than their manual says.
  if (port !== 1 || bytes.length !== 3) {
    throw new Error("unknown message");
  }
  var temperature = (bytes[0] << 8) | bytes[1];
  // The first bit is the sign of a number with 16 bits.
  if (temperature > 0x7fff) {
    temperature -= 0x10000;
  }
  return { temperature: temperature / 10, battery: bytes[2] };
}

// Changes what the decoder returned, such as its units or names.
function Converter(decoded, port) {
  decoded.batteryLow = decoded.battery < 10;
  return decoded;
}

// Tells whether the fields make sense. The message is dropped if they do not.
function Validator(converted, port) {
  return converted.temperature >= -40 && converted.temperature <= 85;
}

// Turns fields into the bytes that the device receives.
function Encoder(object, port) {
  return [object.minutes];
}
