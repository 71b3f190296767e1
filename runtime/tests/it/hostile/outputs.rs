//! Invalid results and thrown values.

use airlock_runtime::FailureKind::{Fuel, Output, Thrown};
use airlock_runtime::{EntryPoint, Slot, Value};

use super::{Act, DECODER, ENCODER, Fails, FailsAs, Gives, HostileHarness, MAKERS, VALIDATOR};
use crate::harness::{call, fields};

const RETURNS: &[Act] = &[
    ("SBX-041", MAKERS, "return 'text';", Fails(Output)),
    ("SBX-041", MAKERS, "return 1;", Fails(Output)),
    ("SBX-041", MAKERS, "return null;", Fails(Output)),
    ("SBX-041", MAKERS, "return undefined;", Fails(Output)),
    ("SBX-041", MAKERS, "return [1];", Fails(Output)),
    ("SBX-041", MAKERS, "return function () {};", Fails(Output)),
    ("SBX-041", MAKERS, "return Symbol('s');", Fails(Output)),
    ("SBX-041", MAKERS, "return 1n;", Fails(Output)),
    ("SBX-041", MAKERS, "return new Date(0);", Fails(Output)),
    ("SBX-042", VALIDATOR, "return 1;", Fails(Output)),
    ("SBX-042", VALIDATOR, "return 'true';", Fails(Output)),
    ("SBX-042", VALIDATOR, "return {};", Fails(Output)),
    ("SBX-042", VALIDATOR, "return undefined;", Fails(Output)),
    ("SBX-042", VALIDATOR, "return new Boolean(true);", Fails(Output)),
    ("SBX-043", ENCODER, "return [256];", Fails(Output)),
    ("SBX-043", ENCODER, "return [-1];", Fails(Output)),
    ("SBX-043", ENCODER, "return [1.5];", Fails(Output)),
    ("SBX-043", ENCODER, "return ['a'];", Fails(Output)),
    ("SBX-043", ENCODER, "return [NaN];", Fails(Output)),
    ("SBX-043", ENCODER, "return [1, , 3];", Fails(Output)),
    ("SBX-043", ENCODER, "return new Array(243).fill(0);", Fails(Output)),
    ("SBX-043", ENCODER, "return new Array(4294967295);", Fails(Output)),
    ("SBX-043", ENCODER, "return 'Hi';", Fails(Output)),
    (
        "SBX-043",
        ENCODER,
        "return new Proxy([], { get: function (t, k) { return k === 'length' ? 1e9 : 1; } });",
        Fails(Output),
    ),
    ("SBX-043", ENCODER, "return [{ valueOf: function () { return 1; } }];", Fails(Output)),
    ("SBX-045", MAKERS, "return { a: NaN, b: -Infinity, c: [Infinity] };", Gives(r#"{"a":null,"b":null,"c":[null]}"#)),
    (
        "SBX-047",
        MAKERS,
        "return { a: 2 ** 53 + 1, b: -0, c: 1e308, d: 5e-324 };",
        Gives(r#"{"a":9007199254740992,"b":0,"c":1e+308,"d":5e-324}"#),
    ),
    ("SBX-047", MAKERS, "return { a: 9007199254740993n };", Fails(Output)),
    ("SBX-048", MAKERS, "return { a: 'x'.repeat(16384) };", Fails(Output)),
    ("SBX-048", MAKERS, "return { a: new Array(5000).fill(1000) };", Fails(Output)),
    ("SBX-048", MAKERS, "var a = {}; for (var i = 0; i < 1025; i++) a['k' + i] = 0; return a;", Fails(Output)),
    ("SBX-048", MAKERS, "var a = []; a.length = 4294967295; return { a: a };", FailsAs(&[Output, Fuel])),
    (
        "SBX-048",
        MAKERS,
        "return { a: new Proxy([], { get: (t, k) => k === 'length' ? 2 ** 53 - 1 : 0 }) };",
        Fails(Output),
    ),
    (
        "SBX-048",
        MAKERS,
        "return new Proxy({}, { ownKeys: () => Array.from({ length: 1e5 }, (v, i) => 'k' + i), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }) });",
        FailsAs(&[Output, Fuel]),
    ),
    ("SBX-048", MAKERS, "var s = 'x'.repeat(5000); return { a: s, b: s, c: s, d: s };", Fails(Output)),
];

/// Values that run hostile script when inspected.
const STUBBORN: &[Act] = &[
    ("SBX-041", MAKERS, "return { get a() { throw new Error('no'); } };", Fails(Thrown)),
    ("SBX-041", MAKERS, "return { toJSON: function () { throw 1; } };", Fails(Thrown)),
    ("SBX-041", MAKERS, "return new Proxy({}, { ownKeys: function () { throw null; } });", Fails(Thrown)),
    ("SBX-041", MAKERS, "var p = Proxy.revocable({}, {}); p.revoke(); return p.proxy;", Fails(Thrown)),
    ("SBX-041", MAKERS, "return { toJSON: function () { return 'text'; } };", Fails(Output)),
    (
        "SBX-041",
        MAKERS,
        "var o = { a: 1, get b() { delete o.c; return 2; }, c: 3 }; return o;",
        Gives(r#"{"a":1,"b":2}"#),
    ),
    (
        "SBX-041",
        MAKERS,
        "var o = { a: { toJSON: function () { o.a = 0; o = null; return 1; } } }; return o;",
        Gives(r#"{"a":1}"#),
    ),
    ("SBX-041", MAKERS, "return { a: Object(Symbol('s')), b: Symbol('s'), c: function () {} };", Gives(r#"{"a":{}}"#)),
];

#[test]
fn refuses_invalid_results() {
    HostileHarness::new().judge(RETURNS);
}

#[test]
fn hostile_values_affect_nothing_else() {
    HostileHarness::new().judge(STUBBORN);
}

/// SBX-050
#[test]
fn any_thrown_value_is_described() {
    let mut hostile = HostileHarness::new();
    for (thrown, told) in [
        ("null", "null"),
        ("undefined", "undefined"),
        ("'a text'", "a text"),
        ("7", "7"),
        ("true", "true"),
        ("-0", "0"),
        ("1n", "1"),
        ("new Error('a reason')", "a reason"),
        ("new RangeError('a reason')", "RangeError: a reason"),
        ("{ code: 4 }", r#"{"code":4}"#),
        ("[1, 2]", "[1,2]"),
        ("Symbol('s')", "value"),
        ("{ toString: function () { throw 1; } }", "{}"),
        ("new Proxy({}, { get: function () { throw 1; } })", "value"),
        ("Object.create(null)", "{}"),
        ("function () { return 1; }", "function"),
        ("new (class extends Error { get message() { throw 1; } })()", "value"),
    ] {
        let failure = hostile.failure(&format!("throw {thrown};"));
        assert!(super::is(&failure, Slot::Decoder, Thrown), "{failure} for {thrown}");
        assert!(failure.message.contains(told), "{failure} for {thrown}");
        hostile.check_innocent(thrown);
    }
}

/// SBX-050
#[test]
fn descriptions_of_errors_are_limited() {
    let mut hostile = HostileHarness::new();
    for thrown in [
        "'x'.repeat(1e6)",
        "new Error('é'.repeat(1e5))",
        "{ a: 'x'.repeat(1e5) }",
        "Object.assign(new Error('x'), { message: { toString: () => 'y'.repeat(1e6) } })",
        "Object.assign(new Error('x'), { stack: 'decoder:1:1\\n'.repeat(1e5) })",
        "Object.assign(new Error('x'), { name: 'n'.repeat(1e6) })",
    ] {
        let failure = hostile.failure(&format!("throw {thrown};"));
        assert!(!failure.message.is_empty() && failure.message.len() <= 1024, "{thrown}: {}", failure.message.len());
    }
}

/// SBX-052
#[test]
fn errors_name_source_lines_and_no_internals() {
    let mut hostile = HostileHarness::new();
    let failure = hostile.failure("\n\n  null.x;");
    assert_eq!((failure.line, failure.column.is_some()), (Some(3), true), "{failure}");
    let failure = hostile
        .failure("throw new Error(new Error('inner').stack + '|' + (function () { return arguments.callee; })());");
    let told = failure.to_string();
    assert!(told.contains("decoder"), "{told}");
    for ours in ["/", "\\", ".rs", ".wasm", "airlock", "quickjs", "javy"] {
        assert!(!told.contains(ours), "{ours} in {told}");
    }
}

/// SBX-043: the largest payload, and every accepted type.
#[test]
fn accepts_encoded_payloads_within_the_limit() {
    let mut hostile = HostileHarness::new();
    for (body, expected) in
        [("return [];", 0), ("return new Array(242).fill(255);", 242), ("return new Uint8Array(242);", 242)]
    {
        let functions = hostile.harness.load(&super::sources(Slot::Encoder, body));
        match hostile.run(Slot::Encoder, &functions, 1).result {
            Ok(Value::Bytes { bytes, .. }) => assert_eq!(bytes.len(), expected),
            other => panic!("{body}: {other:?}"),
        }
    }
}

/// SBX-045
#[test]
fn numbers_without_json_produce_a_warning() {
    let outcome = HostileHarness::new().decode("return { a: NaN, b: { c: [1, -1 / 0] } };");
    assert_eq!(fields(&outcome), r#"{"a":null,"b":{"c":[1,null]}}"#);
    assert_eq!(outcome.warnings.len(), 2, "{:?}", outcome.warnings);
    assert!(outcome.warnings[0].contains("`a` is NaN") && outcome.warnings[1].contains("`b.c[1]` is -Infinity"));
}

/// SBX-048
#[test]
fn results_within_the_limits_are_complete() {
    let mut hostile = HostileHarness::new();
    let outcome = hostile.decode("return { a: 'x'.repeat(16384 - 8) };");
    assert_eq!(fields(&outcome).len(), 16_384);
    let outcome = hostile.decode("var a = {}; for (var i = 0; i < 1024; i++) a['k' + i] = 0; return a;");
    assert_eq!(fields(&outcome).matches(':').count(), 1_024);
    let outcome = hostile.decode("var a = 1; for (var i = 0; i < 31; i++) a = [a]; return { a: a };");
    assert_eq!(fields(&outcome).matches(['[', '{']).count(), 32);
}

/// SBX-041: TS013 warnings and errors are limited too.
#[test]
fn remarks_of_ts013_are_bounded() {
    let mut hostile = HostileHarness::new();
    for (remarks, count) in [
        ("warnings: new Array(1e5).fill('x'.repeat(1e5))", 32),
        ("warnings: { toString: () => 'x'.repeat(1e6) }", 1),
        ("warnings: [Symbol('s'), null, {}, []]", 4),
    ] {
        let text = format!("function decodeUplink() {{ return {{ data: {{}}, {remarks} }}; }}");
        let functions = hostile.harness.load_in(Slot::Decoder, &text);
        let outcome = hostile.harness.sandbox.call(&functions, &call(EntryPoint::Uplink, b""));
        assert_eq!(fields(&outcome), "{}", "{remarks}");
        assert_eq!(outcome.warnings.len(), count, "{remarks}");
        assert!(outcome.warnings.iter().all(|warning| warning.len() <= 1024));
        hostile.check_innocent(remarks);
    }
}

/// SBX-041
#[test]
fn a_failure_names_the_function_that_failed() {
    let mut hostile = HostileHarness::new();
    for slot in DECODER.iter().chain(ENCODER).chain(VALIDATOR) {
        let functions = hostile.harness.load(&super::sources(*slot, "throw new Error('mine');"));
        let failure = hostile.run(*slot, &functions, 1).result.unwrap_err();
        assert!(failure.to_string().starts_with(&format!("the {} failed (line 1, column", slot.name())), "{failure}");
    }
}
