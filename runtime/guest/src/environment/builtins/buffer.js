// `Buffer` as in Node.js, as far as codecs use it.
(function (tools) {
    'use strict';
    const { encodeUtf8, decodeUtf8 } = tools;
    const { fromHex, fromBase64 } = Uint8Array;
    const KEPT_MAX = 0x7fffffff;
    const SOURCES = 'of type string or an instance of Buffer, ArrayBuffer, or Array or an Array-like Object';

    class FastBuffer extends Uint8Array {}

    function Buffer(value, encodingOrOffset, length) {
        return typeof value === 'number' ? Buffer.alloc(value) : Buffer.from(value, encodingOrOffset, length);
    }

    function fail(Kind, code, message) {
        const error = new Kind(message);
        error.code = code;
        return error;
    }

    function show(value) {
        return typeof value === 'string' ? `'${value}'` : String(value);
    }

    function received(value) {
        if (value === null || value === undefined) return String(value);
        if (typeof value === 'function') return `function ${value.name}`;
        if (typeof value === 'object') return `an instance of ${value.constructor?.name ?? 'Object'}`;
        return `type ${typeof value} (${show(value)})`;
    }

    function wrongType(name, expected, value) {
        const subject = name === 'first' ? 'first argument' : `"${name}" argument`;
        const text = `The ${subject} must be ${expected}. Received ${received(value)}`;
        return fail(TypeError, 'ERR_INVALID_ARG_TYPE', text);
    }

    function outOfRange(name, range, value) {
        const text = `The value of "${name}" is out of range. It must be ${range}. Received ${show(value)}`;
        return fail(RangeError, 'ERR_OUT_OF_RANGE', text);
    }

    // Names of encodings, and for each how text becomes bytes and bytes become text.
    function latin1Bytes(text) {
        const bytes = new Uint8Array(text.length);
        for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
        return bytes;
    }

    function codeUnits(bytes, mask) {
        let text = '';
        for (let i = 0; i < bytes.length; i++) text += String.fromCharCode(bytes[i] & mask);
        return text;
    }

    function base64Bytes(text) {
        const digits = text.split('=', 1)[0].replace(/-/g, '+').replace(/_/g, '/').replace(/[^A-Za-z0-9+/]/g, '');
        return fromBase64.call(Uint8Array, digits.length % 4 === 1 ? digits.slice(0, -1) : digits);
    }

    function utf16Bytes(text) {
        const bytes = new Uint8Array(text.length * 2);
        for (let i = 0; i < text.length; i++) {
            bytes[2 * i] = text.charCodeAt(i);
            bytes[2 * i + 1] = text.charCodeAt(i) >> 8;
        }
        return bytes;
    }

    function utf16Text(bytes) {
        let text = '';
        for (let i = 0; i + 1 < bytes.length; i += 2) text += String.fromCharCode(bytes[i] | bytes[i + 1] << 8);
        return text;
    }

    const utf8 = { bytes: encodeUtf8, text: (bytes) => decodeUtf8(bytes) };
    const hex = {
        bytes: (text) => fromHex.call(Uint8Array, /^(?:[\da-f]{2})*/i.exec(text)[0]),
        text: (bytes) => bytes.toHex(),
    };
    const latin1 = { bytes: latin1Bytes, text: (bytes) => codeUnits(bytes, 0xff) };
    const ascii = { bytes: latin1Bytes, text: (bytes) => codeUnits(bytes, 0x7f) };
    const utf16 = { bytes: utf16Bytes, text: utf16Text };
    const base64 = { bytes: base64Bytes, text: (bytes) => bytes.toBase64() };
    const base64url = {
        bytes: base64Bytes,
        text: (bytes) => bytes.toBase64({ alphabet: 'base64url', omitPadding: true }),
    };
    const encodings = {
        __proto__: null, utf8, 'utf-8': utf8, hex, latin1, binary: latin1, ascii, base64, base64url,
        ucs2: utf16, 'ucs-2': utf16, utf16le: utf16, 'utf-16le': utf16,
    };

    function encoding(name) {
        if (name === undefined || name === null || name === '') return utf8;
        const found = encodings[`${name}`.toLowerCase()];
        if (!found) throw fail(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${name}`);
        return found;
    }

    // A buffer over the very memory of `bytes`.
    function over(bytes) {
        return new FastBuffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }

    function isBytes(value) {
        return value instanceof Uint8Array;
    }

    function requireBytes(name, value) {
        if (!isBytes(value)) throw wrongType(name, 'an instance of Buffer or Uint8Array', value);
    }

    function requireSize(size) {
        if (typeof size !== 'number') throw wrongType('size', 'of type number', size);
        if (!(size >= 0 && size <= KEPT_MAX)) throw outOfRange('size', `>= 0 && <= ${KEPT_MAX}`, size);
    }

    function fromObject(value) {
        const plain = value.valueOf && value.valueOf();
        if (plain !== undefined && plain !== null && plain !== value) return Buffer.from(plain);
        if (value.length !== undefined) return FastBuffer.from(Array.prototype.slice.call(value));
        if (value.type === 'Buffer' && Array.isArray(value.data)) return FastBuffer.from(value.data);
        const convert = value[Symbol.toPrimitive];
        return typeof convert === 'function' ? Buffer.from(convert.call(value, 'string')) : null;
    }

    // As in Node.js a negative or fractional place is cut to what there is.
    function clamp(value, fallback, most) {
        if (value === undefined) return fallback;
        const place = Math.trunc(+value) || 0;
        return Math.min(Math.max(place, 0), most);
    }

    function order(a, b) {
        const length = Math.min(a.length, b.length);
        for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
        return Math.sign(a.length - b.length);
    }

    function needle(value, name) {
        if (typeof value === 'string') return encoding(name).bytes(value);
        if (typeof value === 'number') return [value & 255];
        requireBytes('value', value);
        return value;
    }

    function isAt(bytes, sought, place) {
        for (let i = 0; i < sought.length; i++) if (bytes[place + i] !== sought[i]) return false;
        return true;
    }

    function search(bytes, value, offset, name, step) {
        if (typeof offset === 'string') [offset, name] = [undefined, offset];
        const sought = needle(value, name);
        const last = bytes.length - sought.length;
        let place = offset === undefined || Number.isNaN(+offset) ? (step > 0 ? 0 : last) : Math.trunc(+offset);
        if (place < 0) place += bytes.length;
        place = step > 0 ? Math.max(place, 0) : Math.min(place, last);
        for (; place >= 0 && place <= last; place += step) if (isAt(bytes, sought, place)) return place;
        return -1;
    }

    function swap(bytes, size) {
        if (bytes.length % size !== 0) {
            const bits = size * 8;
            throw fail(RangeError, 'ERR_INVALID_BUFFER_SIZE', `Buffer size must be a multiple of ${bits}-bits`);
        }
        for (let i = 0; i < bytes.length; i += size) bytes.subarray(i, i + size).reverse();
        return bytes;
    }

    Object.setPrototypeOf(Buffer, Uint8Array);
    Buffer.prototype = FastBuffer.prototype;
    const statics = {
        poolSize: 8192,
        from(value, encodingOrOffset, length) {
            if (typeof value === 'string') return over(encoding(encodingOrOffset).bytes(value));
            if (typeof value === 'object' && value !== null) {
                if (value instanceof ArrayBuffer) return new FastBuffer(value, encodingOrOffset, length);
                if (Array.isArray(value) || ArrayBuffer.isView(value)) return new FastBuffer(value);
                const made = fromObject(value);
                if (made) return made;
            }
            throw wrongType('first', SOURCES, value);
        },
        alloc(size, fill, name) {
            requireSize(size);
            const made = new FastBuffer(size);
            return fill === undefined || fill === 0 ? made : made.fill(fill, name);
        },
        allocUnsafe(size) {
            return Buffer.alloc(size);
        },
        allocUnsafeSlow(size) {
            return Buffer.alloc(size);
        },
        concat(list, length) {
            if (!Array.isArray(list)) throw wrongType('list', 'an instance of Array', list);
            list.forEach((bytes, index) => requireBytes(`list[${index}]`, bytes));
            const total = length === undefined ? list.reduce((sum, bytes) => sum + bytes.length, 0) : length;
            const made = Buffer.alloc(total);
            let place = 0;
            for (const bytes of list) {
                made.set(bytes.subarray(0, Math.max(total - place, 0)), Math.min(place, total));
                place += bytes.length;
            }
            return made;
        },
        isBuffer(value) {
            return value instanceof FastBuffer;
        },
        isEncoding(name) {
            return typeof name === 'string' && name.toLowerCase() in encodings;
        },
        byteLength(value, name) {
            if (typeof value === 'string') return encoding(name).bytes(value).length;
            if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
            throw wrongType('string', 'of type string or an instance of Buffer or ArrayBuffer', value);
        },
        compare(a, b) {
            requireBytes('buf1', a);
            requireBytes('buf2', b);
            return order(a, b);
        },
    };
    const methods = {
        toString(name, start, end) {
            const from = clamp(start, 0, this.length);
            return encoding(name).text(this.subarray(from, Math.max(from, clamp(end, this.length, this.length))));
        },
        toJSON() {
            return { type: 'Buffer', data: Array.from(this) };
        },
        slice(start, end) {
            return this.subarray(start, end);
        },
        equals(other) {
            requireBytes('otherBuffer', other);
            return order(this, other) === 0;
        },
        compare(target, targetStart, targetEnd, start, end) {
            requireBytes('target', target);
            const part = (bytes, from, to) => bytes.subarray(clamp(from, 0, bytes.length), clamp(to, bytes.length, bytes.length));
            return order(part(this, start, end), part(target, targetStart, targetEnd));
        },
        copy(target, targetStart, start, end) {
            requireBytes('target', target);
            const place = clamp(targetStart, 0, target.length);
            const from = clamp(start, 0, this.length);
            const count = Math.min(clamp(end, this.length, this.length) - from, target.length - place);
            if (count <= 0) return 0;
            target.set(this.subarray(from, from + count), place);
            return count;
        },
        fill(value, start, end, name) {
            if (typeof start === 'string') [start, name] = [undefined, start];
            if (typeof end === 'string') [end, name] = [undefined, end];
            const pattern = typeof value === 'string' || isBytes(value) ? needle(value, name) : [value & 255];
            const last = clamp(end, this.length, this.length);
            const from = clamp(start, 0, this.length);
            const next = pattern.length === 0 ? [0] : pattern;
            for (let i = from; i < last; i++) this[i] = next[(i - from) % next.length];
            return this;
        },
        indexOf(value, offset, name) {
            return search(this, value, offset, name, 1);
        },
        lastIndexOf(value, offset, name) {
            return search(this, value, offset, name, -1);
        },
        includes(value, offset, name) {
            return search(this, value, offset, name, 1) !== -1;
        },
        swap16() {
            return swap(this, 2);
        },
        swap32() {
            return swap(this, 4);
        },
        swap64() {
            return swap(this, 8);
        },
        write(text, start, length, name) {
            if (typeof text !== 'string') throw wrongType('argument', 'of type string', text);
            if (typeof start === 'string') [start, name] = [undefined, start];
            if (typeof length === 'string') [length, name] = [undefined, length];
            const from = clamp(start, 0, this.length);
            const bytes = encoding(name).bytes(text);
            let count = Math.min(clamp(length, this.length - from, this.length - from), bytes.length);
            // No half characters.
            if (encoding(name) === utf8) while (count > 0 && (bytes[count] & 0xc0) === 0x80) count -= 1;
            this.set(bytes.subarray(0, count), from);
            return count;
        },
    };
    methods.toLocaleString = methods.toString;

    // Adds functions as a class would: not listed by `for in`.
    function define(target, members) {
        for (const name of Object.keys(members)) {
            Object.defineProperty(target, name, { value: members[name], writable: true, configurable: true });
        }
    }

    define(Buffer, statics);
    Object.defineProperty(Buffer, Symbol.species, { get: () => FastBuffer, configurable: true });
    define(Buffer.prototype, methods);
    define(Buffer.prototype, { constructor: Buffer });
    define(globalThis, { Buffer });
    return { define, fail, wrongType, outOfRange };
})
