//! Functions that loop endlessly or take long.

use airlock_runtime::FailureKind::{Fuel, Memory, Output};
use airlock_runtime::{Slot, Sources};

use super::{ALL, Act, DECODER, Fails, FailsAs, FailsOrGives, Gives, HostileHarness, MAKERS, VALIDATOR};

const ENDLESS: &[Act] = &[
    ("SBX-001", DECODER, "while (true) {}", Fails(Fuel)),
    ("SBX-001", DECODER, "for (;;) bytes.length;", Fails(Fuel)),
    ("SBX-001", DECODER, "do { port += 1; } while (port);", Fails(Fuel)),
    ("SBX-001", DECODER, "a: while (true) { continue a; }", Fails(Fuel)),
    ("SBX-002", ALL, "while (true) {}", Fails(Fuel)),
    ("SBX-002", ALL, "try { while (true) {} } catch (e) {} return { n: 0 };", Fails(Fuel)),
    ("SBX-002", ALL, "try { while (true) {} } finally { return { n: 0 }; }", Fails(Fuel)),
    ("SBX-002", ALL, "while (true) { try { while (true) {} } catch (e) { continue; } }", Fails(Fuel)),
    ("SBX-006", ALL, "/^(a+)+$/.test('a'.repeat(40) + '!'); return { n: 0 };", Fails(Fuel)),
    ("SBX-006", ALL, "'a'.repeat(40).replace(/(a*)*b/g, ''); return { n: 0 };", Fails(Fuel)),
    ("SBX-006", ALL, "new RegExp('(a|a)*b').exec('a'.repeat(40)); return { n: 0 };", Fails(Fuel)),
];

/// Endless loops in callbacks of the guest and of built-in functions.
const HIDDEN: &[Act] = &[
    ("SBX-001", MAKERS, "return { get a() { while (true) {} } };", Fails(Fuel)),
    ("SBX-001", MAKERS, "return { toJSON: function () { while (true) {} } };", Fails(Fuel)),
    ("SBX-001", MAKERS, "return new Proxy({}, { ownKeys: function () { while (true) {} } });", Fails(Fuel)),
    ("SBX-001", MAKERS, "return new Proxy({}, { get: function () { while (true) {} } });", Fails(Fuel)),
    (
        "SBX-001",
        MAKERS,
        "throw Object.assign(function () {}, { toString: function () { while (true) {} } });",
        Fails(Fuel),
    ),
    ("SBX-001", MAKERS, "throw { get a() { while (true) {} } };", Fails(Fuel)),
    ("SBX-001", MAKERS, "console.log({ toJSON: function () { while (true) {} } }); return {};", Fails(Fuel)),
    ("SBX-001", MAKERS, "return [3, 2, 1].sort(function () { while (true) {} });", Fails(Fuel)),
    ("SBX-001", MAKERS, "'a'.replace(/a/, function () { while (true) {} });", Fails(Fuel)),
    ("SBX-001", MAKERS, "JSON.parse('[1]', function () { while (true) {} });", Fails(Fuel)),
    ("SBX-001", MAKERS, "Number({ valueOf: function () { while (true) {} } });", Fails(Fuel)),
    ("SBX-001", MAKERS, "var [a] = { [Symbol.iterator]: () => ({ next: () => ({}) }) }; for (;;);", Fails(Fuel)),
    ("SBX-001", MAKERS, "Array.from({ [Symbol.iterator]: () => ({ next: () => ({}) }) });", Fails(Fuel)),
    (
        "SBX-001",
        MAKERS,
        "(function* () { while (true) yield; })().next().x; for (var x of (function* () { while (true) yield; })());",
        Fails(Fuel),
    ),
    ("SBX-001", MAKERS, "class A { static { while (true); } }", Fails(Fuel)),
    ("SBX-001", MAKERS, "new Function('while (true) {}')();", Fails(Fuel)),
    ("SBX-001", MAKERS, "eval('while (true) {}');", Fails(Fuel)),
    ("SBX-001", MAKERS, "`${{ toString() { while (true); } }}`;", Fails(Fuel)),
];

/// Built-in functions that do much work in one call: fuel must count the work, not the call.
const BULKY: &[Act] = &[
    ("SBX-001", DECODER, "var s = 'x'.repeat(1e6); while (true) s.indexOf('y');", Fails(Fuel)),
    ("SBX-001", DECODER, "var a = new Array(1e5).fill(0); while (true) a.indexOf(1);", Fails(Fuel)),
    ("SBX-001", DECODER, "var a = new Uint8Array(1e6); while (true) a.fill(7);", Fails(Fuel)),
    ("SBX-001", DECODER, "var a = new Uint8Array(2e6); while (true) a.copyWithin(0, 1e6);", Fails(Fuel)),
    ("SBX-001", DECODER, "var a = new Uint8Array(2e6), b = a.subarray(1e6); while (true) a.set(b);", Fails(Fuel)),
    ("SBX-001", DECODER, "var s = 'x'.repeat(1e6); while (true) s.split('').length;", FailsAs(&[Fuel, Memory])),
    ("SBX-001", DECODER, "new Array(4294967295).includes(1); while (true);", Fails(Fuel)),
    ("SBX-001", DECODER, "new Array(4294967295).join('');", Fails(Fuel)),
    ("SBX-001", DECODER, "Array.prototype.reverse.call({ length: 2 ** 53 - 1 });", Fails(Fuel)),
    ("SBX-001", DECODER, "var n = 3n; while (true) n *= n;", Fails(Fuel)),
    ("SBX-001", DECODER, "while (true) JSON.parse('[' + '1,'.repeat(1e4) + '1]');", Fails(Fuel)),
    ("SBX-001", DECODER, "while (true) parseInt('1'.repeat(1e5));", Fails(Fuel)),
    ("SBX-001", DECODER, "while (true) (1e300).toFixed(100);", Fails(Fuel)),
    ("SBX-001", DECODER, "while (true) 'İ'.repeat(1e5).normalize('NFKD').toLowerCase();", Fails(Fuel)),
    (
        "SBX-015",
        DECODER,
        "var a = []; for (var i = 0; i < 1e5; i++) a.push(i * 7919 % 1e5); a.sort(() => Math.random() - 0.5); return { n: a.length };",
        FailsOrGives(Fuel, r#"{"n":100000}"#),
    ),
    (
        "SBX-015",
        DECODER,
        "var a = [3, 1, 2]; a.sort(function () { a.length = 0; a.push(9); return 1; }); return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    (
        "SBX-015",
        DECODER,
        "var b = new ArrayBuffer(4096, { maxByteLength: 65536 }), a = new Uint8Array(b); a.sort(function (x, y) { b.resize(b.byteLength === 16 ? 65536 : 16); return x - y; }); return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
];

/// Jobs queued for after the call never run.
const LATER: &[Act] = &[
    ("SBX-016", MAKERS, "return Promise.resolve({ n: 1 });", Fails(Output)),
    ("SBX-016", MAKERS, "return (async function () { return { n: 1 }; })();", Fails(Output)),
    ("SBX-016", VALIDATOR, "return Promise.resolve(true);", Fails(Output)),
    ("SBX-016", MAKERS, "return new Promise(function () {});", Fails(Output)),
    (
        "SBX-017",
        DECODER,
        "(function again() { Promise.resolve().then(again); })(); return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    (
        "SBX-017",
        DECODER,
        "Promise.resolve().then(function () { while (true); }); return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    ("SBX-017", DECODER, "queueMicrotask(function () {}); return { n: 1 };", Gives(r#"{"n":1}"#)),
    (
        "SBX-017",
        DECODER,
        "var g = (async function* () { yield 1; })(); g.next(); return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    (
        "SBX-017",
        DECODER,
        "(async function () { await new Promise(function () {}); })(); return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
    ("SBX-017", DECODER, "while (true) Promise.resolve().then(function () {});", FailsAs(&[Fuel, Memory])),
    (
        "SBX-017",
        DECODER,
        "new FinalizationRegistry(function () { while (true); }).register({}, 1); return { n: 1 };",
        Gives(r#"{"n":1}"#),
    ),
];

#[test]
fn endless_functions_use_up_their_fuel() {
    HostileHarness::with_limits(|limits| limits.fuel = 5_000_000).judge(ENDLESS);
}

#[test]
fn endless_loops_are_stopped_everywhere() {
    HostileHarness::with_limits(|limits| limits.fuel = 5_000_000).judge(HIDDEN);
}

#[test]
fn expensive_built_ins_use_fuel() {
    HostileHarness::new().judge(BULKY);
}

#[test]
fn nothing_runs_after_the_call() {
    HostileHarness::new().judge(LATER);
}

#[test]
fn endless_sources_fail_to_load() {
    let mut hostile = HostileHarness::with_limits(|limits| limits.load_fuel = 20_000_000);
    for (case, head) in [
        ("SBX-003", "while (true) {}"),
        ("SBX-003", "var wait = (function () { for (;;) {} })();"),
        ("SBX-003", "Object.defineProperty(globalThis, 'Decoder', { get: function () { while (true); } });"),
        ("SBX-006", "new RegExp('(a+)+$').test('a'.repeat(40) + '!');"),
    ] {
        let tail = if head.contains("Decoder") { "" } else { "function Decoder() { return {}; }" };
        let text = format!("{head}\n{tail}");
        let sources = Sources { decoder: text, ..Sources::default() };
        let failure = hostile.harness.engine.load(&sources, hostile.harness.engine.limits()).expect_err(head);
        assert!(super::is(&failure, Slot::Decoder, Fuel), "{case}: {failure} in {head}");
        hostile.check_innocent(head);
    }
}
