//! Names of globals and built-ins: those of the language, those that engines lack, and those of other programs.

/// Globals of ECMAScript 2023.
#[rustfmt::skip]
pub(in crate::lint) const ES_NAMES: &[&str] = &[
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
pub(in crate::lint) const FOREIGN_NAMES: &[&str] = &[
    "Buffer", "Intl", "TextDecoder", "TextEncoder", "URL", "alert", "atob", "btoa", "bytes", "clearInterval",
    "clearTimeout", "console", "crypto", "define", "exports", "fPort", "fetch", "fields", "global", "module", "msg",
    "normalizedPayload", "obj", "payload", "performance", "port", "process", "require", "self", "setImmediate",
    "setInterval", "setTimeout", "structuredClone", "variables", "window", "__dirname", "__filename",
];

/// Built-ins that our sandbox has, and goja of October 2023 lacks.
#[rustfmt::skip]
pub(in crate::lint) const GOJA_LACKS: &[&str] = &[
    "Array.fromAsync", "Array.prototype.toReversed", "Array.prototype.toSorted", "Array.prototype.toSpliced",
    "Array.prototype.with", "ArrayBuffer.prototype.detached", "ArrayBuffer.prototype.immutable",
    "ArrayBuffer.prototype.maxByteLength", "ArrayBuffer.prototype.resizable", "ArrayBuffer.prototype.resize",
    "ArrayBuffer.prototype.sliceToImmutable", "ArrayBuffer.prototype.transfer",
    "ArrayBuffer.prototype.transferToFixedLength", "ArrayBuffer.prototype.transferToImmutable",
    "AsyncDisposableStack", "Atomics", "BigInt", "BigInt64Array", "BigUint64Array", "DataView.prototype.getBigInt64",
    "DataView.prototype.getBigUint64", "DataView.prototype.getFloat16", "DataView.prototype.setBigInt64",
    "DataView.prototype.setBigUint64", "DataView.prototype.setFloat16", "Date.prototype.getYear",
    "Date.prototype.setYear", "Date.prototype.toGMTString", "DisposableStack", "Error.captureStackTrace",
    "Error.isError", "FinalizationRegistry", "Float16Array", "Iterator", "JSON.isRawJSON", "JSON.rawJSON",
    "Map.groupBy", "Map.prototype.getOrInsert", "Map.prototype.getOrInsertComputed", "Math.f16round",
    "Math.sumPrecise", "Object.groupBy", "Object.prototype.__defineGetter__", "Object.prototype.__defineSetter__",
    "Object.prototype.__lookupGetter__", "Object.prototype.__lookupSetter__", "Promise.try", "Promise.withResolvers",
    "RegExp.escape", "RegExp.prototype.dotAll", "RegExp.prototype.hasIndices", "RegExp.prototype.unicodeSets",
    "Set.prototype.difference", "Set.prototype.intersection", "Set.prototype.isDisjointFrom",
    "Set.prototype.isSubsetOf", "Set.prototype.isSupersetOf", "Set.prototype.symmetricDifference",
    "Set.prototype.union", "SharedArrayBuffer", "String.prototype.anchor", "String.prototype.big",
    "String.prototype.blink", "String.prototype.bold", "String.prototype.fixed", "String.prototype.fontcolor",
    "String.prototype.fontsize", "String.prototype.isWellFormed", "String.prototype.italics", "String.prototype.link",
    "String.prototype.small", "String.prototype.strike", "String.prototype.sub", "String.prototype.sup",
    "String.prototype.toWellFormed", "SuppressedError", "Symbol.asyncDispose", "Symbol.asyncIterator",
    "Symbol.dispose", "Uint8Array.fromBase64", "Uint8Array.fromHex", "Uint8Array.prototype.setFromBase64",
    "Uint8Array.prototype.setFromHex", "Uint8Array.prototype.toBase64", "Uint8Array.prototype.toHex",
    "WeakMap.prototype.getOrInsert", "WeakMap.prototype.getOrInsertComputed", "WeakRef",
];

/// Built-ins that our sandbox has, and otto, which is of ECMAScript 5, lacks.
#[rustfmt::skip]
pub(in crate::lint) const OTTO_LACKS: &[&str] = &[
    "AggregateError", "Array.from", "Array.fromAsync", "Array.of", "Array.prototype.at", "Array.prototype.copyWithin",
    "Array.prototype.entries", "Array.prototype.fill", "Array.prototype.find", "Array.prototype.findIndex",
    "Array.prototype.findLast", "Array.prototype.findLastIndex", "Array.prototype.flat", "Array.prototype.flatMap",
    "Array.prototype.includes", "Array.prototype.keys", "Array.prototype.toReversed", "Array.prototype.toSorted",
    "Array.prototype.toSpliced", "Array.prototype.values", "Array.prototype.with", "ArrayBuffer",
    "AsyncDisposableStack", "Atomics", "BigInt", "BigInt64Array", "BigUint64Array", "DataView", "DisposableStack",
    "Error.captureStackTrace", "Error.isError", "FinalizationRegistry", "Float16Array", "Float32Array",
    "Float64Array", "Int16Array", "Int32Array", "Int8Array", "Iterator", "JSON.isRawJSON", "JSON.rawJSON", "Map",
    "Math.acosh", "Math.asinh", "Math.atanh", "Math.cbrt", "Math.clz32", "Math.cosh", "Math.expm1", "Math.f16round",
    "Math.fround", "Math.hypot", "Math.imul", "Math.log10", "Math.log1p", "Math.log2", "Math.sign", "Math.sinh",
    "Math.sumPrecise", "Math.tanh", "Math.trunc", "Number.EPSILON", "Number.MAX_SAFE_INTEGER",
    "Number.MIN_SAFE_INTEGER", "Number.isFinite", "Number.isInteger", "Number.isSafeInteger", "Number.parseFloat",
    "Number.parseInt", "Object.assign", "Object.entries", "Object.fromEntries", "Object.getOwnPropertyDescriptors",
    "Object.getOwnPropertySymbols", "Object.groupBy", "Object.hasOwn", "Object.is",
    "Object.prototype.__defineGetter__", "Object.prototype.__defineSetter__", "Object.prototype.__lookupGetter__",
    "Object.prototype.__lookupSetter__", "Object.setPrototypeOf", "Object.values", "Promise", "Proxy", "Reflect",
    "RegExp.escape", "RegExp.prototype.dotAll", "RegExp.prototype.flags", "RegExp.prototype.hasIndices",
    "RegExp.prototype.sticky", "RegExp.prototype.unicode", "RegExp.prototype.unicodeSets", "Set", "SharedArrayBuffer",
    "String.fromCodePoint", "String.prototype.anchor", "String.prototype.at", "String.prototype.big",
    "String.prototype.blink", "String.prototype.bold", "String.prototype.codePointAt", "String.prototype.endsWith",
    "String.prototype.fixed", "String.prototype.fontcolor", "String.prototype.fontsize", "String.prototype.includes",
    "String.prototype.isWellFormed", "String.prototype.italics", "String.prototype.link", "String.prototype.matchAll",
    "String.prototype.normalize", "String.prototype.padEnd", "String.prototype.padStart", "String.prototype.repeat",
    "String.prototype.replaceAll", "String.prototype.small", "String.prototype.startsWith", "String.prototype.strike",
    "String.prototype.sub", "String.prototype.sup", "String.prototype.toWellFormed", "String.prototype.trimEnd",
    "String.prototype.trimStart", "String.raw", "SuppressedError", "Symbol", "Uint16Array", "Uint32Array",
    "Uint8Array", "Uint8ClampedArray", "WeakMap", "WeakRef", "WeakSet", "globalThis",
];
