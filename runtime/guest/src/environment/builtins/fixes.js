// What QuickJS does otherwise than others, and codecs would notice. Evaluated when the guest is built, in each realm.
(function () {
    'use strict';
    const valueOf = Number.prototype.valueOf;
    const toString = Date.prototype.toString;
    const toTimeString = Date.prototype.toTimeString;

    function define(target, members) {
        for (const name of Object.keys(members)) {
            Object.defineProperty(target, name, { value: members[name], writable: true, configurable: true });
        }
    }

    function named(text) {
        return text.replace(/GMT\+0000$/, '$& (Coordinated Universal Time)');
    }

    define(BigInt, {
        // Gave back a negative number where the bits fill whole words.
        asUintN(bits, value) {
            return value & ((1n << BigInt(bits)) - 1n);
        },
    });
    define(Number.prototype, {
        // Was `toString`; now as in English, whatever the locale.
        toLocaleString(locales, options) {
            const number = valueOf.call(this);
            if (!Number.isFinite(number)) return String(number).replace('Infinity', '∞');
            const least = options?.minimumFractionDigits ?? 0;
            const most = options?.maximumFractionDigits ?? Math.max(least, 3);
            const size = Math.abs(number);
            let [whole, fraction = ''] = size < 1e21 ? size.toFixed(most).split('.') : [String(BigInt(size))];
            while (fraction.length > least && fraction.endsWith('0')) fraction = fraction.slice(0, -1);
            if (options?.useGrouping !== false) whole = whole.replace(/\B(?=(\d{3})+$)/g, ',');
            return (number < 0 || Object.is(number, -0) ? '-' : '') + whole + (fraction && `.${fraction}`);
        },
    });
    define(Date.prototype, {
        toString() {
            return named(toString.call(this));
        },
        toTimeString() {
            return named(toTimeString.call(this));
        },
    });
})()
