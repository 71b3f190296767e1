// What people want to read: volts instead of millivolts, and the dew point where there is a humidity.
function Converter(decoded, port) {
  decoded.battery = decoded.battery / 1000;
  if (decoded.humidity > 0) {
    var gamma = Math.log(decoded.humidity / 100) + 17.62 * decoded.temperature / (243.12 + decoded.temperature);
    decoded.dew_point = Math.round(243.12 * gamma / (17.62 - gamma) * 10) / 10;
  }
  return decoded;
}
