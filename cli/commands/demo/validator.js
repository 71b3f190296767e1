// A sensor that reports nonsense is not worth a message.
function Validator(converted, port) {
  if (port === 1) return converted.temperature > -40 && converted.temperature < 85 && converted.humidity <= 100;
  return converted.flow < 1000;
}
