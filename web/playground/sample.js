// What the page shows when it was opened with nothing.

export const SAMPLE = {
  text: `// A decoder of TS013, as ChirpStack 4 and The Things Stack call it.
function decodeUplink(input) {
  if (input.bytes.length < 4) {
    return { errors: ['expected 4 bytes or more'] };
  }
  var battery = input.bytes[3] / 10;
  return {
    data: {
      temperature: (((input.bytes[0] << 24) >> 16) | input.bytes[1]) / 10,
      humidity: input.bytes[2] / 2,
      battery: battery
    },
    warnings: battery < 2.8 ? ['the battery is low'] : []
  };
}

function encodeDownlink(input) {
  return { fPort: 2, bytes: [input.data.interval >> 8, input.data.interval & 0xff] };
}

function decodeDownlink(input) {
  return { data: { interval: (input.bytes[0] << 8) | input.bytes[1] } };
}
`,
  payloads: "00d75e24\nff9c501b\n0102",
  fields: '{"interval": 600}',
};
