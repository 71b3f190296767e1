//! Results are serialized like `JSON.stringify` does, even if that runs script.

use airlock_runtime::{FailureKind, Slot, Sources};
use serde_json::Value;

use crate::harness::{Harness, fields};

/// Function bodies.
const VALUES: [&str; 9] = [
    // A getter that removes itself, and one that adds properties.
    "var o = {}; Object.defineProperty(o, 'own', { enumerable: true, configurable: true,
        get: function () { delete o.own; o.other = 1; return 5; } }); o.last = 1; return o;",
    "var o = { get a() { for (var i = 0; i < 2000; i++) o['more' + i] = i; return 1; } }; return o;",
    // Members after one whose `toJSON` removes earlier ones.
    "var o = {}; for (var i = 0; i < 12; i++) o['t' + i] = i;
        o.mid = { toJSON: function () { for (var i = 0; i < 12; i++) delete o['t' + i]; return 'm'; } };
        o.temperature = 21.5; o.humidity = 50; return o;",
    "var o = { a: 1, b: { toJSON: function () { delete o.c; return 2; } }, c: 3, d: 4 }; return o;",
    "return { a: [1, , undefined, function () {}, Symbol('s')], b: undefined, c: Symbol('s') };",
    "return { 2: 'two', a: 1, 1: 'one' };",
    "return { n: new Number(1), s: new String('x'), b: new Boolean(false), d: new Date(0) };",
    "return new Proxy({ a: 1, b: { c: 2 } }, {});",
    "BigInt.prototype.toJSON = function () { return this.toString(); }; return { a: 5n, b: Object(6n) };",
];

#[test]
fn results_are_written_as_json_stringify_writes_them() {
    let mut harness = Harness::new();
    for body in VALUES {
        let text = format!(
            "function make() {{ {body} }}
             function Decoder() {{ return {{ text: JSON.stringify(make()), value: make() }}; }}"
        );
        let functions = harness.load_in(Slot::Decoder, &text);
        let written: Value = serde_json::from_str(fields(&harness.decode(&functions, &[1]))).unwrap();
        assert_eq!(written["value"].to_string(), written["text"].as_str().unwrap(), "{body}");
    }
}

#[test]
fn lone_surrogates_are_written_as_json_stringify_writes_them() {
    let mut harness = Harness::new();
    for (value, expected) in [
        (r"{ s: '\ud800', t: 'x\udfffy' }", r#"{"s":"\ud800","t":"x\udfffy"}"#),
        (r"{ '\udbff': 1, '\udc00': 2 }", r#"{"\udbff":1,"\udc00":2}"#),
        (
            r"{ list: ['\udc00\ud800'], '\ud800': { '\ud801': 1 } }",
            r#"{"list":["\udc00\ud800"],"\ud800":{"\ud801":1}}"#,
        ),
        (r"{ pair: '\ud83d\ude00', near: '\ud7ff\ue000' }", "{\"pair\":\"😀\",\"near\":\"\u{d7ff}\u{e000}\"}"),
    ] {
        let text = format!("function Decoder() {{ console.log(JSON.stringify({value})); return {value}; }}");
        let functions = harness.load_in(Slot::Decoder, &text);
        let outcome = harness.decode(&functions, &[1]);
        assert_eq!(fields(&outcome), expected);
        assert_eq!(serde_json::from_str::<String>(&outcome.logs[0].fields[0]).unwrap(), expected);
    }
}

#[test]
fn refuses_boxed_bigints_too() {
    let mut harness = Harness::new();
    for value in ["5n", "Object(5n)"] {
        let functions = harness.load_in(Slot::Decoder, &format!("function Decoder() {{ return {{ a: {value} }}; }}"));
        let failure = harness.decode(&functions, &[1]).result.unwrap_err();
        assert!(failure.kind == FailureKind::Output && failure.message.contains("BigInt"), "{value}: {failure}");
    }
}

#[test]
fn values_that_json_omits_count_towards_the_length() {
    let mut harness = Harness::new();
    for list in ["new Array(3e9)", "new Array(20000)", "Array.from({ length: 10000 })"] {
        let functions = harness.load_in(Slot::Decoder, &format!("function Decoder() {{ return {{ a: {list} }}; }}"));
        let outcome = harness.decode(&functions, &[1]);
        let failure = outcome.result.unwrap_err();
        assert!(failure.kind == FailureKind::Output && failure.message.contains("16"), "{list}: {failure}");
        assert!(outcome.fuel < 20_000_000, "{list} took {} units", outcome.fuel);
    }
}

#[test]
fn passing_a_value_on_does_not_call_its_getters() {
    let mut harness = Harness::new();
    let functions = harness.load(&Sources {
        decoder: "var calls = 0;
            var counting = { enumerable: true, get: function () { calls += 1; return calls; } };
            function Decoder() {
                return { list: Object.defineProperty([7], 1, counting), own: Object.defineProperty({}, 'n', counting) };
            }"
        .to_owned(),
        converter: "function Converter(fields) { return { first: fields.list[1], second: fields.own.n }; }".to_owned(),
        ..Sources::default()
    });
    assert_eq!(fields(&harness.decode(&functions, &[1])), r#"{"first":1,"second":2}"#);
}
