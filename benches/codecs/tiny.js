// Type, value, type, value: the smallest decoder that anybody ships.
function Decoder(bytes, port) {
  var decoded = {};
  for (var i = 0; i < bytes.length;) {
    var type = bytes[i++];
    if (type === 0x01) {
      decoded.temperature = ((bytes[i] << 24 >> 16) | bytes[i + 1]) / 10;
      i += 2;
    } else if (type === 0x02) {
      decoded.humidity = bytes[i++] / 2;
    } else if (type === 0x03) {
      decoded.battery = ((bytes[i] << 8) | bytes[i + 1]) / 1000;
      i += 2;
    } else {
      break;
    }
  }
  return decoded;
}
