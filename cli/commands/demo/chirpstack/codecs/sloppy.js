// A script as ChirpStack 4.17 and newer reject it: it assigns to a name that is not declared.
function decodeUplink(input) {
    status = input.bytes[0];
    return { data: { open: (status & 1) === 1, tampered: (status & 2) === 2, openings: input.bytes[2] } };
}
