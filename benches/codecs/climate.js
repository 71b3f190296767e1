/**
 * Payload decoder of an indoor climate sensor (temperature, humidity, CO2, TVOC, pressure, light, motion).
 *
 * Frames are lists of channels: one byte channel number, one byte channel type, then the value.
 *
 *   --------------------- Uplink ----------------------
 *   01 75  battery, %                 0b 8e  report interval, min
 *   03 67  temperature, 0.1 °C        20 ce  history record
 *   04 68  humidity, 0.5 %            ff 09  hardware version
 *   05 00  motion (0/1)               ff 0a  firmware version
 *   06 cb  light level (0..5)         ff 16  serial number
 *   07 7d  CO2, ppm                   83 67  temperature alarm
 *   08 7d  TVOC, 0.01 index           84 68  humidity alarm
 *   09 73  pressure, 0.1 hPa          87 7d  CO2 alarm
 */

var LIGHT_LEVELS = ["dark", "dim", "indoor", "bright", "very bright", "daylight"];

var ALARM_KINDS = {
  0: "released",
  1: "above the upper threshold",
  2: "below the lower threshold",
  3: "outside of both thresholds",
  16: "sensor read failed",
  17: "out of measuring range"
};

var RESET_CAUSES = ["power on", "watchdog", "button", "remote command", "brown out", "firmware update"];

var DEVICE_CLASSES = { 0: "Class A", 1: "Class B", 2: "Class C", 3: "Class C to B" };

function readUInt8(bytes) {
  return bytes & 0xff;
}

function readInt8(bytes) {
  var ref = readUInt8(bytes);
  return ref > 0x7f ? ref - 0x100 : ref;
}

function readUInt16LE(bytes) {
  var value = (bytes[1] << 8) + bytes[0];
  return value & 0xffff;
}

function readInt16LE(bytes) {
  var ref = readUInt16LE(bytes);
  return ref > 0x7fff ? ref - 0x10000 : ref;
}

function readUInt32LE(bytes) {
  var value = (bytes[3] << 24) + (bytes[2] << 16) + (bytes[1] << 8) + bytes[0];
  return (value & 0xffffffff) >>> 0;
}

function readHexString(bytes) {
  var temp = [];
  for (var idx = 0; idx < bytes.length; idx++) {
    temp.push(("0" + (bytes[idx] & 0xff).toString(16)).slice(-2));
  }
  return temp.join("");
}

function readVersion(bytes) {
  return "v" + (bytes[0] & 0xff) + "." + (bytes[1] & 0xff);
}

function readHardwareVersion(bytes) {
  var major = bytes[0] & 0xff;
  var minor = (bytes[1] & 0xff) >> 4;
  return "v" + major + "." + minor;
}

function round(value, digits) {
  var factor = Math.pow(10, digits);
  return Math.round(value * factor) / factor;
}

function dewPoint(temperature, humidity) {
  if (humidity <= 0) {
    return null;
  }
  var gamma = Math.log(humidity / 100) + (17.62 * temperature) / (243.12 + temperature);
  return round((243.12 * gamma) / (17.62 - gamma), 1);
}

function comfortOf(temperature, humidity) {
  if (temperature < 18) {
    return humidity > 70 ? "cold and damp" : "cold";
  }
  if (temperature > 26) {
    return humidity > 60 ? "hot and sticky" : "hot";
  }
  if (humidity < 30) {
    return "dry";
  }
  return humidity > 60 ? "damp" : "comfortable";
}

function airQualityOf(co2, tvoc) {
  var byCo2 = co2 <= 800 ? 1 : co2 <= 1000 ? 2 : co2 <= 1400 ? 3 : co2 <= 2000 ? 4 : 5;
  if (tvoc === undefined) {
    return byCo2;
  }
  var byTvoc = tvoc <= 1 ? 1 : tvoc <= 2 ? 2 : tvoc <= 3 ? 3 : tvoc <= 4 ? 4 : 5;
  return Math.max(byCo2, byTvoc);
}

function readAlarm(bytes, scale, digits) {
  var threshold = readInt16LE(bytes.slice(0, 2));
  var kind = bytes[2];
  var alarm = { code: kind, text: ALARM_KINDS[kind] || "unknown" };
  if (kind < 16) {
    alarm.value = round(threshold * scale, digits);
  }
  return alarm;
}

function readHistory(bytes) {
  var record = { timestamp: readUInt32LE(bytes.slice(0, 4)) };
  record.temperature = readInt16LE(bytes.slice(4, 6)) / 10;
  record.humidity = readUInt8(bytes[6]) / 2;
  record.co2 = readUInt16LE(bytes.slice(7, 9));
  record.motion = (bytes[9] & 0x80) !== 0;
  record.light_level = LIGHT_LEVELS[bytes[9] & 0x07] || "unknown";
  return record;
}

function decodeChannel(decoded, channel, type, bytes, i) {
  switch ((channel << 8) | type) {
    case 0x0175:
      decoded.battery = readUInt8(bytes[i]);
      return i + 1;
    case 0x0367:
      decoded.temperature = readInt16LE(bytes.slice(i, i + 2)) / 10;
      return i + 2;
    case 0x0468:
      decoded.humidity = readUInt8(bytes[i]) / 2;
      return i + 1;
    case 0x0500:
      decoded.motion = bytes[i] === 1;
      return i + 1;
    case 0x06cb:
      decoded.light_level = LIGHT_LEVELS[bytes[i]] || "unknown";
      return i + 1;
    case 0x077d:
      decoded.co2 = readUInt16LE(bytes.slice(i, i + 2));
      return i + 2;
    case 0x087d:
      decoded.tvoc = readUInt16LE(bytes.slice(i, i + 2)) / 100;
      return i + 2;
    case 0x0973:
      decoded.pressure = readUInt16LE(bytes.slice(i, i + 2)) / 10;
      return i + 2;
    case 0x0b8e:
      decoded.report_interval = readUInt16LE(bytes.slice(i, i + 2));
      return i + 2;
    case 0x20ce:
      decoded.history = decoded.history || [];
      decoded.history.push(readHistory(bytes.slice(i, i + 10)));
      return i + 10;
    case 0x8367:
      decoded.temperature_alarm = readAlarm(bytes.slice(i, i + 3), 0.1, 1);
      return i + 3;
    case 0x8468:
      decoded.humidity_alarm = readAlarm(bytes.slice(i, i + 3), 0.5, 1);
      return i + 3;
    case 0x877d:
      decoded.co2_alarm = readAlarm(bytes.slice(i, i + 3), 1, 0);
      return i + 3;
    default:
      return decodeDevice(decoded, channel, type, bytes, i);
  }
}

function decodeDevice(decoded, channel, type, bytes, i) {
  if (channel !== 0xff) {
    return -1;
  }
  switch (type) {
    case 0x01:
      decoded.protocol_version = readUInt8(bytes[i]);
      return i + 1;
    case 0x09:
      decoded.hardware_version = readHardwareVersion(bytes.slice(i, i + 2));
      return i + 2;
    case 0x0a:
      decoded.firmware_version = readVersion(bytes.slice(i, i + 2));
      return i + 2;
    case 0x0b:
      decoded.device_status = "on";
      return i + 1;
    case 0x0f:
      decoded.device_class = DEVICE_CLASSES[bytes[i]] || "unknown";
      return i + 1;
    case 0x16:
      decoded.serial_number = readHexString(bytes.slice(i, i + 8));
      return i + 8;
    case 0x18:
      decoded.temperature_offset = readInt8(bytes[i]) / 10;
      return i + 1;
    case 0xfe:
      decoded.reset_cause = RESET_CAUSES[bytes[i]] || "unknown";
      return i + 1;
    default:
      return -1;
  }
}

function derive(decoded) {
  if (decoded.temperature !== undefined && decoded.humidity !== undefined) {
    decoded.dew_point = dewPoint(decoded.temperature, decoded.humidity);
    decoded.comfort = comfortOf(decoded.temperature, decoded.humidity);
  }
  if (decoded.co2 !== undefined) {
    decoded.air_quality = airQualityOf(decoded.co2, decoded.tvoc);
  }
  return decoded;
}

function Decoder(bytes, port) {
  var decoded = {};
  var i = 0;
  while (i + 2 <= bytes.length) {
    var next = decodeChannel(decoded, bytes[i], bytes[i + 1], bytes, i + 2);
    if (next < 0) {
      decoded.unknown_from = i;
      break;
    }
    i = next;
  }
  return derive(decoded);
}

function writeUInt16LE(value) {
  return [value & 0xff, (value >> 8) & 0xff];
}

function Encoder(object, port) {
  var bytes = [];
  if (object.report_interval !== undefined) {
    if (object.report_interval < 1 || object.report_interval > 1440) {
      throw new Error("report_interval must be 1 to 1440 minutes");
    }
    bytes = bytes.concat([0xff, 0x8e, 0x00], writeUInt16LE(object.report_interval));
  }
  if (object.temperature_offset !== undefined) {
    bytes = bytes.concat([0xff, 0x18, Math.round(object.temperature_offset * 10) & 0xff]);
  }
  if (object.co2_threshold !== undefined) {
    bytes = bytes.concat([0xff, 0x06, 0x01], writeUInt16LE(object.co2_threshold));
  }
  if (object.light_report !== undefined) {
    var mode = ["off", "change", "always"].indexOf(object.light_report);
    if (mode < 0) {
      throw new Error("light_report must be off, change or always");
    }
    bytes = bytes.concat([0xff, 0x2e, mode]);
  }
  if (object.reboot) {
    bytes = bytes.concat([0xff, 0x10, 0xff]);
  }
  return bytes;
}
