// Fields of a few bits, and a variable of the device.
function decodeUplink(input) {
    switch (input.fPort) {
        case 2: {
            const head = (input.bytes[0] << 8) | input.bytes[1];
            const distance = (input.bytes[2] << 8) | input.bytes[3];
            return {
                data: {
                    battery: (head & 0x3fff) / 1000,
                    distance,
                    level: Number(input.variables.height_cm) - distance,
                    low: (head & 0x4000) !== 0,
                },
            };
        }
        default:
            return { errors: [`unknown port ${input.fPort}`] };
    }
}
