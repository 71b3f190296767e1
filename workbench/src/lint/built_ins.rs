//! Names of globals and built-ins: those of the language, those that engines lack, and those of other programs.

/// Globals of ECMAScript 2023.
#[rustfmt::skip]
pub(super) const ES_NAMES: &[&str] = &[
    "AggregateError", "Array", "ArrayBuffer", "Atomics", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean",
    "DataView", "Date", "Error", "EvalError", "FinalizationRegistry", "Float32Array", "Float64Array", "Function",
    "Infinity", "Int16Array", "Int32Array", "Int8Array", "JSON", "Map", "Math", "NaN", "Number", "Object",
    "Promise", "Proxy", "RangeError", "ReferenceError", "Reflect", "RegExp", "Set", "SharedArrayBuffer", "String",
    "Symbol", "SyntaxError", "TypeError", "URIError", "Uint16Array", "Uint32Array", "Uint8Array",
    "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet", "arguments", "decodeURI", "decodeURIComponent",
    "encodeURI", "encodeURIComponent", "escape", "eval", "globalThis", "isFinite", "isNaN", "parseFloat",
    "parseInt", "undefined", "unescape",
];

/// Globals of other programs that run JavaScript, which codecs use by mistake.
#[rustfmt::skip]
pub(super) const FOREIGN_NAMES: &[&str] = &[
    "Buffer", "Intl", "TextDecoder", "TextEncoder", "URL", "alert", "atob", "btoa", "bytes", "clearInterval",
    "clearTimeout", "console", "crypto", "define", "exports", "fPort", "fetch", "fields", "global", "module", "msg",
    "normalizedPayload", "obj", "payload", "performance", "port", "process", "require", "self", "setImmediate",
    "setInterval", "setTimeout", "structuredClone", "variables", "window", "__dirname", "__filename",
];

/// What goja of October 2023 lacks of ECMAScript 2023.
#[rustfmt::skip]
pub(super) const GOJA_LACKS: &[&str] = &[
    "Array.fromAsync", "Array.prototype.toReversed", "Array.prototype.toSorted", "Array.prototype.toSpliced",
    "Array.prototype.with", "Atomics", "BigInt", "BigInt64Array", "BigUint64Array", "Date.prototype.getYear",
    "FinalizationRegistry", "Map.groupBy", "Object.groupBy", "SharedArrayBuffer", "String.prototype.anchor",
    "String.prototype.isWellFormed", "String.prototype.toWellFormed", "WeakRef",
];

/// What otto lacks, which is of ECMAScript 5.
#[rustfmt::skip]
pub(super) const OTTO_LACKS: &[&str] = &[
    "AggregateError", "Array.from", "Array.of", "Array.prototype.at", "Array.prototype.copyWithin",
    "Array.prototype.entries", "Array.prototype.fill", "Array.prototype.find", "Array.prototype.findIndex",
    "Array.prototype.findLast", "Array.prototype.findLastIndex", "Array.prototype.flat", "Array.prototype.flatMap",
    "Array.prototype.includes", "Array.prototype.keys", "Array.prototype.toReversed", "Array.prototype.toSorted",
    "Array.prototype.toSpliced", "Array.prototype.values", "Array.prototype.with", "ArrayBuffer", "Atomics", "BigInt", "BigInt64Array",
    "BigUint64Array", "DataView", "FinalizationRegistry", "Float32Array", "Float64Array", "Int16Array",
    "Int32Array", "Int8Array", "Map", "Math.acosh", "Math.asinh", "Math.atanh", "Math.cbrt", "Math.clz32",
    "Math.cosh", "Math.expm1", "Math.fround", "Math.hypot", "Math.imul", "Math.log10", "Math.log1p", "Math.log2",
    "Math.sign", "Math.sinh", "Math.tanh", "Math.trunc", "Number.EPSILON", "Number.MAX_SAFE_INTEGER",
    "Number.MIN_SAFE_INTEGER", "Number.isFinite", "Number.isInteger", "Number.isNaN", "Number.isSafeInteger",
    "Number.parseFloat", "Number.parseInt", "Object.assign", "Object.entries", "Object.fromEntries",
    "Object.getOwnPropertyDescriptors", "Object.getOwnPropertySymbols", "Object.groupBy", "Object.hasOwn",
    "Object.is", "Object.setPrototypeOf", "Object.values", "Promise", "Proxy", "Reflect", "Set",
    "SharedArrayBuffer", "String.fromCodePoint", "String.prototype.at", "String.prototype.codePointAt",
    "String.prototype.endsWith", "String.prototype.includes", "String.prototype.matchAll",
    "String.prototype.normalize", "String.prototype.padEnd", "String.prototype.padStart", "String.prototype.repeat",
    "String.prototype.replaceAll", "String.prototype.startsWith", "String.prototype.trimEnd",
    "String.prototype.trimStart", "String.raw", "Symbol", "Uint16Array", "Uint32Array", "Uint8Array",
    "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet", "globalThis",
];
