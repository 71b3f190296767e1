//! Functions that exceed the memory or stack limit.

use airlock_runtime::FailureKind::{Fuel, Memory, Output, Stack, Thrown, Time};
use airlock_runtime::{EntryPoint, FailureKind, Slot};

use super::{ALL, Act, DECODER, ENCODER, Fails, FailsAs, FailsOrGives, Gives, HostileHarness, MAKERS};
use crate::harness::call;

/// QuickJS has its own limits on strings and buffers, and throws.
const REFUSED: &[FailureKind] = &[Memory, Thrown];

const BOMBS: &[Act] = &[
    ("SBX-022", ALL, "var a = []; while (true) a.push([a.length]);", Fails(Memory)),
    ("SBX-022", ALL, "var a = {}; for (var i = 0; true; i++) a['k' + i] = { i: i };", Fails(Memory)),
    ("SBX-022", ALL, "var m = new Map(); while (true) m.set({}, [m.size]);", Fails(Memory)),
    ("SBX-022", ALL, "var f = []; while (true) f.push(function () { return f; });", Fails(Memory)),
    ("SBX-022", DECODER, "while (true) Symbol.for('s' + (port++).toString().repeat(99));", FailsAs(&[Memory, Fuel])),
    ("SBX-023", ALL, "var s = 'x'; while (true) s += s;", FailsAs(REFUSED)),
    ("SBX-023", ALL, "var a = [], s = 'x'; while (true) { s += s; a.push(s.split('')); }", FailsAs(REFUSED)),
    ("SBX-023", DECODER, "return { s: 'x'.padEnd(2 ** 30) };", FailsAs(REFUSED)),
    ("SBX-023", DECODER, "return { s: new Array(2 ** 20).join('0123456789012345678901234567890') };", FailsAs(REFUSED)),
    ("SBX-024", ALL, "new ArrayBuffer(2 ** 31 - 1);", FailsAs(REFUSED)),
    ("SBX-024", DECODER, "new ArrayBuffer(2 ** 31);", FailsAs(REFUSED)),
    ("SBX-024", DECODER, "new ArrayBuffer(8, { maxByteLength: 2 ** 32 });", FailsAs(REFUSED)),
    ("SBX-024", DECODER, "new Uint8Array(4e9);", FailsAs(REFUSED)),
    ("SBX-024", DECODER, "new Float64Array(1e9);", FailsAs(REFUSED)),
    ("SBX-024", DECODER, "try { new ArrayBuffer(2 ** 31 - 1); } catch (e) { return { n: 1 }; }", Gives(r#"{"n":1}"#)),
];

const DEEP: &[Act] = &[
    ("SBX-029", ALL, "function f() { f(); } f();", Fails(Stack)),
    ("SBX-029", ALL, "return (function f() { return f() + 1; })();", Fails(Stack)),
    ("SBX-029", MAKERS, "var o = { get a() { return this.a; } }; return { n: o.a };", Fails(Stack)),
    ("SBX-029", MAKERS, "var o = { toString: function () { return '' + o; } }; return { n: '' + o };", Fails(Stack)),
    (
        "SBX-029",
        MAKERS,
        "var p = new Proxy({}, { get: function (t, k, r) { return r[k]; } }); return { n: p.x };",
        Fails(Stack),
    ),
    ("SBX-029", MAKERS, "return { toJSON: function f() { return { toJSON: f }; } };", FailsOrGives(Output, r#"{}"#)),
    ("SBX-029", DECODER, "[1].map(function f() { return [1].map(f); });", Fails(Stack)),
    ("SBX-029", DECODER, "JSON.parse('['.repeat(200000));", Fails(Stack)),
    ("SBX-029", DECODER, "new RegExp('('.repeat(200000) + ')'.repeat(200000));", Fails(Thrown)),
    ("SBX-029", DECODER, "eval('('.repeat(100000) + '1' + ')'.repeat(100000));", Fails(Stack)),
    (
        "SBX-029",
        DECODER,
        "var f = function () {}; for (var i = 0; i < 1e5; i++) f = f.bind(); f();",
        FailsAs(&[Memory, Stack]),
    ),
    ("SBX-033", MAKERS, "var a = {}; a.a = a; return a;", Fails(Output)),
    ("SBX-033", MAKERS, "var a = { b: [] }; a.b.push({ c: a }); return a;", Fails(Output)),
    ("SBX-035", MAKERS, "var a = {}; for (var i = 0; i < 1e4; i++) a = { a: a }; return a;", Fails(Output)),
    ("SBX-035", MAKERS, "var a = []; for (var i = 0; i < 1e5; i++) a = [a]; return { a: a };", Fails(Output)),
    ("SBX-035", ENCODER, "var a = [1]; for (var i = 0; i < 1e5; i++) a = [a]; return a;", Fails(Output)),
];

#[test]
fn memory_bombs_hit_the_memory_limit() {
    HostileHarness::with_limits(|limits| limits.fuel = 1_000_000_000).judge(BOMBS);
}

#[test]
fn deep_recursion_and_deep_results_hit_their_limits() {
    HostileHarness::with_limits(|limits| limits.fuel = 1_000_000_000).judge(DEEP);
}

/// SBX-027
#[test]
fn each_limit_has_its_own_failure_kind() {
    let mut hostile = HostileHarness::with_limits(|limits| {
        limits.fuel = 50_000_000;
        limits.heap_bytes_max = 2 << 20;
    });
    let mut timed = HostileHarness::with_limits(|limits| {
        limits.fuel = u64::MAX;
        limits.time_ms_max = 30;
    });
    let failures = [
        hostile.failure("while (true) {}"),
        hostile.failure("var a = []; while (true) a.push([a]);"),
        hostile.failure("(function f() { f(); })();"),
        timed.failure("while (true) {}"),
    ];
    let kinds = failures.each_ref().map(|failure| failure.kind);
    assert_eq!(kinds, [Fuel, Memory, Stack, Time]);
    for (failure, word) in failures.iter().zip(["fuel", "memory", "deeply", "clock"]) {
        assert!(failure.to_string().starts_with("the decoder ") && failure.to_string().contains(word), "{failure}");
    }
}

/// SBX-034
#[test]
fn deep_fields_never_reach_the_encoder() {
    let mut hostile = HostileHarness::new();
    let functions = hostile.harness.load_in(Slot::Encoder, "function Encoder(fields) { return [fields.n]; }");
    let deep = format!(r#"{{"n":{}{}}}"#, "[".repeat(8_000), "]".repeat(8_000));
    let deeper = format!(r#"{{"n":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let long = format!(r#"{{"n":"{}"}}"#, "x".repeat(20_000));
    for fields in [deep, deeper, long] {
        let outcome = hostile.harness.sandbox.call(&functions, &call(EntryPoint::EncodeDownlink, fields.as_bytes()));
        let failure = outcome.result.unwrap_err();
        assert!(super::is(&failure, Slot::Encoder, Output), "{failure}");
        assert_eq!(outcome.fuel, 0, "the sandbox was not asked");
        hostile.check_next("deep fields", Slot::Encoder, &functions);
    }
}
