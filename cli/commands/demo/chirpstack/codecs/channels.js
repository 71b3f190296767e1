// Any number of values, each with its channel and its type.
function decodeUplink(input) {
    var bytes = input.bytes;
    var fields = {};
    for (var i = 0; i + 2 < bytes.length; ) {
        var channel = bytes[i++];
        var type = bytes[i++];
        if (channel === 0x01 && type === 0x75) {
            fields.battery = bytes[i];
            i += 1;
        } else if (channel === 0x03 && type === 0x67) {
            fields.temperature = readInt16LE(bytes, i) / 10;
            i += 2;
        } else if (channel === 0x04 && type === 0x68) {
            fields.humidity = bytes[i] / 2;
            i += 1;
        } else {
            return { errors: ["unknown channel " + channel] };
        }
    }
    return { data: fields };
}

function readInt16LE(bytes, at) {
    var value = (bytes[at + 1] << 8) | bytes[at];
    return value > 0x7fff ? value - 0x10000 : value;
}
