// The numbers in a `Buffer`: `readUInt16LE`, `writeFloatBE` and their many siblings, made from a few.
(function (tools) {
    'use strict';
    const { define, fail, wrongType, outOfRange } = tools;
    const float32 = new Float32Array(1);
    const float64 = new Float64Array(1);
    const methods = {};

    function fit(bytes, offset, size) {
        const last = bytes.length - size;
        if (offset >= 0 && offset <= last && offset === Math.floor(offset)) return;
        if (typeof offset !== 'number') throw wrongType('offset', 'of type number', offset);
        if (offset !== Math.floor(offset)) throw outOfRange('offset', 'an integer', offset);
        if (last < 0) {
            throw fail(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', 'Attempt to access memory outside buffer bounds');
        }
        throw outOfRange('offset', `>= 0 and <= ${last}`, offset);
    }

    function fitSize(size) {
        if (typeof size !== 'number') throw wrongType('byteLength', 'of type number', size);
        if (!(size >= 1 && size <= 6 && size === Math.floor(size))) throw outOfRange('byteLength', '>= 1 and <= 6', size);
    }

    function read(bytes, offset, size, isSigned, isLittle) {
        fit(bytes, offset, size);
        let value = 0;
        for (let i = 0; i < size; i++) value = value * 256 + bytes[isLittle ? offset + size - 1 - i : offset + i];
        return isSigned && value >= 2 ** (8 * size - 1) ? value - 2 ** (8 * size) : value;
    }

    function write(bytes, value, offset, size, isSigned, isLittle) {
        value = +value;
        const [least, most] = isSigned ? [-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1] : [0, 2 ** (8 * size) - 1];
        if (value < least || value > most) throw outOfRange('value', `>= ${least} and <= ${most}`, value);
        fit(bytes, offset, size);
        let rest = Math.trunc(value) || 0;
        for (let i = 0; i < size; i++) {
            bytes[isLittle ? offset + i : offset + size - 1 - i] = rest;
            rest = Math.floor(rest / 256);
        }
        return offset + size;
    }

    function readFloat(bytes, offset, place, isLittle) {
        const raw = new Uint8Array(place.buffer);
        fit(bytes, offset, raw.length);
        raw.set(bytes.subarray(offset, offset + raw.length));
        if (!isLittle) raw.reverse();
        return place[0];
    }

    function writeFloat(bytes, value, offset, place, isLittle) {
        const raw = new Uint8Array(place.buffer);
        fit(bytes, offset, raw.length);
        place[0] = value;
        if (!isLittle) raw.reverse();
        bytes.set(raw, offset);
        return offset + raw.length;
    }

    function readBig(bytes, offset, isSigned, isLittle) {
        fit(bytes, offset, 8);
        const [low, high] = isLittle ? [offset, offset + 4] : [offset + 4, offset];
        const value = BigInt(read(bytes, high, 4, false, isLittle)) << 32n | BigInt(read(bytes, low, 4, false, isLittle));
        return isSigned ? BigInt.asIntN(64, value) : value;
    }

    function writeBig(bytes, value, offset, isSigned, isLittle) {
        if (typeof value !== 'bigint') throw wrongType('value', 'of type bigint', value);
        if ((isSigned ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value)) !== value) {
            throw outOfRange('value', isSigned ? '>= -(2n ** 63n) and < 2n ** 63n' : '>= 0n and < 2n ** 64n', value);
        }
        fit(bytes, offset, 8);
        const [low, high] = isLittle ? [offset, offset + 4] : [offset + 4, offset];
        write(bytes, Number(BigInt.asUintN(32, value)), low, 4, false, isLittle);
        write(bytes, Number(BigInt.asUintN(32, value >> 32n)), high, 4, false, isLittle);
        return offset + 8;
    }

    function add(name, reader, writer) {
        methods[`read${name}`] = reader;
        methods[`write${name}`] = writer;
        if (name.includes('UInt')) {
            methods[`read${name.replace('UInt', 'Uint')}`] = reader;
            methods[`write${name.replace('UInt', 'Uint')}`] = writer;
        }
    }

    function addFixed(name, size, isSigned, isLittle) {
        add(
            name,
            function (offset = 0) { return read(this, offset, size, isSigned, isLittle); },
            function (value, offset = 0) { return write(this, value, offset, size, isSigned, isLittle); },
        );
    }

    function addOrdered(end, isLittle) {
        for (const isSigned of [true, false]) {
            const kind = isSigned ? 'Int' : 'UInt';
            addFixed(`${kind}16${end}`, 2, isSigned, isLittle);
            addFixed(`${kind}32${end}`, 4, isSigned, isLittle);
            add(
                kind + end,
                function (offset, size) { fitSize(size); return read(this, offset, size, isSigned, isLittle); },
                function (value, offset, size) { fitSize(size); return write(this, value, offset, size, isSigned, isLittle); },
            );
            add(
                `Big${kind}64${end}`,
                function (offset = 0) { return readBig(this, offset, isSigned, isLittle); },
                function (value, offset = 0) { return writeBig(this, value, offset, isSigned, isLittle); },
            );
        }
        for (const [kind, place] of [['Float', float32], ['Double', float64]]) {
            add(
                kind + end,
                function (offset = 0) { return readFloat(this, offset, place, isLittle); },
                function (value, offset = 0) { return writeFloat(this, value, offset, place, isLittle); },
            );
        }
    }

    addFixed('Int8', 1, true, true);
    addFixed('UInt8', 1, false, true);
    addOrdered('LE', true);
    addOrdered('BE', false);
    define(Buffer.prototype, methods);
})
