// `TextEncoder` and `TextDecoder` for UTF-8 and the two other encodings that devices use, `atob` and `btoa`.
(function (tools) {
    'use strict';
    const { encodeUtf8, decodeUtf8 } = tools;
    const { fromBase64 } = Uint8Array;
    const labels = {
        __proto__: null, 'utf-8': 'utf-8', utf8: 'utf-8', 'unicode-1-1-utf-8': 'utf-8', ascii: 'windows-1252',
        'us-ascii': 'windows-1252', latin1: 'windows-1252', 'iso-8859-1': 'windows-1252', 'windows-1252': 'windows-1252',
        'utf-16': 'utf-16le', 'utf-16le': 'utf-16le', 'ucs-2': 'utf-16le',
    };
    // What windows-1252 has where Unicode has control characters.
    const SPECIAL = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';

    class TextEncoder {
        get encoding() {
            return 'utf-8';
        }

        encode(text = '') {
            return encodeUtf8(`${text}`);
        }

        encodeInto(text, target) {
            let read = 0;
            let written = 0;
            for (const character of `${text}`) {
                const bytes = encodeUtf8(character);
                if (written + bytes.length > target.length) break;
                target.set(bytes, written);
                read += character.length;
                written += bytes.length;
            }
            return { read, written };
        }
    }

    function bytesOf(input) {
        if (input === undefined) return new Uint8Array(0);
        if (input instanceof ArrayBuffer) return new Uint8Array(input);
        if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
        throw new TypeError('The "input" argument must be an instance of ArrayBuffer or ArrayBufferView');
    }

    const decoders = {
        binary: (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''),
        'utf-8': decodeUtf8,
        'windows-1252': (bytes) => Array.from(bytes, (byte) =>
            byte >= 0x80 && byte < 0xa0 ? SPECIAL[byte - 0x80] : String.fromCharCode(byte)).join(''),
        'utf-16le': (bytes, isFatal) => {
            let text = '';
            for (let i = 0; i + 1 < bytes.length; i += 2) text += String.fromCharCode(bytes[i] | bytes[i + 1] << 8);
            if (bytes.length % 2) text += '\ufffd';
            const whole = text.toWellFormed();
            return isFatal && (whole !== text || bytes.length % 2) ? null : whole;
        },
    };

    class TextDecoder {
        #encoding;
        #fatal;
        #ignoreBOM;

        constructor(label = 'utf-8', options = {}) {
            this.#encoding = labels[`${label}`.trim().toLowerCase()];
            if (!this.#encoding) throw new RangeError(`The "${label}" encoding is not supported`);
            this.#fatal = Boolean(options?.fatal);
            this.#ignoreBOM = Boolean(options?.ignoreBOM);
        }

        get encoding() {
            return this.#encoding;
        }

        get fatal() {
            return this.#fatal;
        }

        get ignoreBOM() {
            return this.#ignoreBOM;
        }

        decode(input) {
            const text = decoders[this.#encoding](bytesOf(input), this.#fatal);
            if (text === null) throw new TypeError(`The encoded data was not valid for encoding ${this.#encoding}`);
            return !this.#ignoreBOM && text[0] === '\ufeff' ? text.slice(1) : text;
        }
    }

    function invalidCharacter(message) {
        const error = new Error(message);
        error.name = 'InvalidCharacterError';
        return error;
    }

    function atob(text) {
        const digits = `${text}`.replace(/[\t\n\f\r ]/g, '');
        const bare = digits.length % 4 === 0 ? digits.replace(/==?$/, '') : digits;
        if (bare.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(bare)) {
            throw invalidCharacter('The string to be decoded is not correctly encoded.');
        }
        return decoders.binary(fromBase64.call(Uint8Array, bare));
    }

    function btoa(text) {
        const characters = Array.from(`${text}`, (character) => character.charCodeAt(0));
        if (characters.some((code) => code > 0xff)) throw invalidCharacter('Invalid character');
        return Uint8Array.from(characters).toBase64();
    }

    for (const made of [TextEncoder, TextDecoder, atob, btoa]) {
        Object.defineProperty(globalThis, made.name, { value: made, writable: true, configurable: true });
    }
})
