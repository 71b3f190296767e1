// A function of the tests: hides what its message brings and ends in the way that the message asks for, or looks for what
// others hid. It comes as `[how, ...text]`; what is looked for comes veiled, so that a message does not bring it itself.

var VEIL = 0x55;
var messages = 0;

function act(bytes, good, tooLarge) {
    messages += 1;
    if (bytes[0] === 0) {
        look(bytes.slice(1).map(function (byte) { return byte ^ VEIL; }));
        return good;
    }
    var text = String.fromCharCode.apply(null, bytes.slice(1));
    hide(text, bytes.slice(1));
    switch (bytes[0]) {
    case 2: throw new Error(text);
    case 3: for (var endless = text; ;) endless = (text + endless).slice(1, 50);
    case 4: for (var all = []; ;) all.push(text.repeat(5000), new Uint8Array(50000).fill(bytes[1]));
    case 5: return (function f(a) { return f(a + text.length) + text; })(0);
    case 6: return tooLarge(text);
    case 7: new Uint8Array(2e6).fill(bytes[1]); return good;
    case 8: look(bytes.slice(1)); return good;
    }
    return good;
}

function hide(text, bytes) {
    leaked = text;
    Object.prototype[text] = text;
    Array.prototype.leaked = function () { return text; };
    Error.prototype.message = text;
    act.leaked = { deep: [text, Symbol.for(text), new Map([[text, new Set([text])]])] };
    buffer = new Uint8Array(30000);
    for (var i = 0; i + bytes.length < buffer.length; i += 500) buffer.set(bytes, i);
    // What is freed again lies where others will allocate.
    for (var i = 0; i < 500; i++) ("freed " + i + text + text + "\u2603").slice(3);
    for (var size = 8; size < 3e4; size *= 2) new Uint8Array(size).fill(bytes[0]);
    new RegExp(text, "g").exec(text + text);
    try { null[text](); } catch (error) { last = error; }
    console.log(text);
}

function look(bytes) {
    var text = String.fromCharCode.apply(null, bytes);
    if (messages !== 1) throw new Error("this is message " + messages);
    var seen = new Set();
    // Errors of the engine's own making come with texts of its own.
    var errors = ["null.x", "undefined()", "new Array(-1)", "x y", "absent"].map(function (code) {
        try { return eval(code); } catch (error) { return error; }
    });
    var waiting = [globalThis, act, look, errors, new Error(), /a/, [], function* () {}, (async function () {})()];
    while (waiting.length) {
        var value = waiting.pop();
        if (typeof value === "symbol") value = String(value);
        if (typeof value === "string" && value.includes(text)) throw new Error("found it in a text");
        if (value === null || typeof value !== "object" && typeof value !== "function" || seen.has(value)) continue;
        seen.add(value);
        if (typeof value === "function") waiting.push(Function.prototype.toString.call(value));
        if (value instanceof Map || value instanceof Set) value.forEach(function (a, b) { waiting.push(a, b); });
        waiting.push(Object.getPrototypeOf(value));
        if (ArrayBuffer.isView(value)) {
            // Every element would be a property.
            if (contains(value, bytes)) throw new Error("found it in a buffer");
            continue;
        }
        Reflect.ownKeys(value).forEach(function (key) {
            var property = Object.getOwnPropertyDescriptor(value, key);
            waiting.push(key, property.value, property.get, property.set);
        });
    }
    if (seen.size < 400) throw new Error("only " + seen.size + " objects can be reached");
    // Whatever size they have, new buffers must not show what was freed there.
    for (var size = 8; size < 3e4; size *= 2) {
        var words = new Uint32Array(size / 4);
        for (var i = 0; i < words.length; i++) if (words[i]) throw new Error("found something in a new buffer");
        if (new Array(size / 8).some(Boolean)) throw new Error("found something in a new array");
    }
}

function contains(view, bytes) {
    for (var start = -1; (start = view.indexOf(bytes[0], start + 1)) >= 0;) {
        if (bytes.every(function (byte, i) { return view[start + i] === byte; })) return true;
    }
    return false;
}
