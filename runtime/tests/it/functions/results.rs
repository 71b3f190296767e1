//! Values that functions may return, and their interpretation.

use airlock_runtime::{EntryPoint, FailureKind, Slot, Sources};

use crate::harness::{Harness, call, check_encodes, encode, fields, sources, uplink};

#[test]
fn fields_follow_json_stringify() {
    let mut harness = Harness::new();
    for (value, expected) in [
        ("{ b: 1, a: 2, 7: 3 }", r#"{"7":3,"b":1,"a":2}"#),
        ("{ a: undefined, f: function () {}, s: Symbol(), n: null }", r#"{"n":null}"#),
        ("{ a: [1, , undefined, function () {}] }", r#"{"a":[1,null,null,null]}"#),
        (
            "{ n: [0.1 + 0.2, 1e21, 1e-7, -0, 1 / 3, -1.5, 4294967296] }",
            r#"{"n":[0.30000000000000004,1e+21,1e-7,0,0.3333333333333333,-1.5,4294967296]}"#,
        ),
        ("{ s: 'a\"\\\\\\n\\u0001é€😀' }", "{\"s\":\"a\\\"\\\\\\n\\u0001é€😀\"}"),
        ("{ s: 'x\\ud800y' }", r#"{"s":"x\ud800y"}"#),
        (
            "{ d: new Date(0), n: new Number(4), s: new String('x'), b: new Boolean(false), r: /x/, m: new Map([[1, 2]]) }",
            r#"{"d":"1970-01-01T00:00:00.000Z","n":4,"s":"x","b":false,"r":{},"m":{}}"#,
        ),
        ("{ t: { toJSON: function (key) { return 'is ' + key; } } }", r#"{"t":"is t"}"#),
        (
            "Object.create({ inherited: 1 }, { shown: { value: 2, enumerable: true }, hidden: { value: 3 } })",
            r#"{"shown":2}"#,
        ),
        ("{ get g() { return 5; } }", r#"{"g":5}"#),
        ("new Proxy({ a: [1] }, {})", r#"{"a":[1]}"#),
        ("{ u: new Uint8Array([1, 2]) }", r#"{"u":{"0":1,"1":2}}"#),
    ] {
        harness.check_decodes(&format!("function Decoder() {{ return {value}; }}"), b"x", expected);
    }
}

#[test]
fn numbers_that_json_does_not_have_become_null_with_a_warning() {
    let mut harness = Harness::new();
    let text = "function Decoder() { return { a: NaN, b: { c: [1, -1 / 0] } }; }";
    let functions = harness.load_in(Slot::Decoder, text);
    let outcome = harness.decode(&functions, b"x");
    assert_eq!(fields(&outcome), r#"{"a":null,"b":{"c":[1,null]}}"#);
    assert!(outcome.warnings[0].contains("`a` is NaN"), "{:?}", outcome.warnings);
    assert!(outcome.warnings[1].contains("`b.c[1]` is -Infinity"), "{:?}", outcome.warnings);
}

#[test]
fn results_of_the_wrong_type_are_refused() {
    let mut harness = Harness::new();
    for value in ["[]", "'x'", "1", "null", "undefined", "true", "function () {}", "Promise.resolve({})", "new Date(0)"]
    {
        harness.check_fails(Slot::Decoder, FailureKind::Output, &format!("function Decoder() {{ return {value}; }}"));
        harness.check_fails(
            Slot::Converter,
            FailureKind::Output,
            &format!("function Converter() {{ return {value}; }}"),
        );
        let data = format!("function decodeUplink() {{ return {{ data: {value} }}; }}");
        // Returning no data is not an error.
        if matches!(value, "null" | "undefined") {
            harness.check_decodes(&data, b"x", "null");
        } else {
            harness.check_fails(Slot::Decoder, FailureKind::Output, &data);
        }
    }
    for value in ["1", "undefined", "new Boolean(true)", "[]", "'true'", "Promise.resolve(true)"] {
        harness.check_fails(
            Slot::Validator,
            FailureKind::Output,
            &format!("function Validator() {{ return {value}; }}"),
        );
    }
    harness.check_fails(Slot::Decoder, FailureKind::Output, "async function Decoder() { return {}; }");
}

#[test]
fn values_without_json_are_refused() {
    let mut harness = Harness::new();
    for body in [
        "var a = {}; a.a = a; return a;",
        "return { n: 10n };",
        "var a = {}; for (var i = 0; i < 32; i++) a = { a: a }; return a;",
        "var a = {}; for (var i = 0; i < 1025; i++) a['k' + i] = 0; return a;",
        "return { a: 'x'.repeat(16384) };",
        "return { a: new Array(5000).fill(1000) };",
    ] {
        harness.check_fails(Slot::Decoder, FailureKind::Output, &format!("function Decoder() {{ {body} }}"));
    }
    harness.check_decodes(
        "function Decoder() { var a = 1; for (var i = 0; i < 31; i++) a = [a]; return { a: a }; }",
        b"x",
        &format!("{{\"a\":{}1{}}}", "[".repeat(31), "]".repeat(31)),
    );
}

#[test]
fn ts013_warnings_and_errors_become_warnings_and_failures() {
    let mut harness = Harness::new();
    let text = "function decodeUplink(input) { return { data: { a: 1 }, warnings: ['low battery'], errors: input.bytes[0] ? ['bad', 'worse'] : [] }; }";
    let functions = harness.load_in(Slot::Decoder, text);
    let outcome = harness.decode(&functions, &[0]);
    assert_eq!((fields(&outcome), &outcome.warnings[..]), (r#"{"a":1}"#, &["low battery".to_owned()][..]));
    let outcome = harness.decode(&functions, &[1]);
    let failure = outcome.result.expect_err("errors are a failure");
    assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Thrown, "bad; worse"));
    assert_eq!(outcome.warnings, ["low battery"]);
}

#[test]
fn a_ts013_decoder_may_return_no_data() {
    let nothing = "function decodeUplink() { return { data: null, warnings: ['asleep'] }; }";
    let mut harness = Harness::new();
    let functions = harness.load_in(Slot::Decoder, nothing);
    let outcome = harness.decode(&functions, b"x");
    assert_eq!((fields(&outcome), &outcome.warnings[..]), ("null", &["asleep".to_owned()][..]));
    let converter = "function Converter(f) { f.n = Object.keys(f).length; return f; }".to_owned();
    let steps = Sources { converter, ..sources(Slot::Decoder, nothing) };
    assert_eq!(uplink(&steps, b"x").0, r#"{"n":0}"#);
}

#[test]
fn encoders_return_bytes() {
    check_encodes(
        "function Encoder(o, port) { return [o.a, 6 / 2, 255.0, port]; }",
        r#"{"a":0}"#,
        &[0, 3, 255, 7],
        None,
    );
    check_encodes("function Encoder() { return new Uint8Array([1, 2]); }", "{}", &[1, 2], None);
    check_encodes("function Encoder() { return []; }", "{}", &[], None);
    check_encodes(
        "function encodeDownlink(input) { return { bytes: [input.data.a], fPort: 9 }; }",
        r#"{"a":4}"#,
        &[4],
        Some(9),
    );
    check_encodes(
        "function Encode(fPort, obj, variables) { return [fPort, obj.a, Object.keys(variables).length]; }",
        r#"{"a":4}"#,
        &[7, 4, 0],
        None,
    );
}

#[test]
fn refuses_bytes_that_cannot_be_sent() {
    for value in ["256", "-1", "1.5", "NaN", "'1'", "true", "null", "undefined", "[1]", "1n"] {
        let failure = encode(&format!("function Encoder() {{ return [0, {value}]; }}"), "{}").result.expect_err(value);
        assert_eq!((failure.slot, failure.kind), (Slot::Encoder, FailureKind::Output), "{value}");
        assert!(failure.message.contains("index 1"), "{failure}");
    }
    for value in ["{ length: 1, 0: 1 }", "'x'", "null", "undefined", "new Array(243).fill(0)", "7"] {
        let failure = encode(&format!("function Encoder() {{ return {value}; }}"), "{}").result.expect_err(value);
        assert_eq!(failure.kind, FailureKind::Output, "{value}");
    }
    check_encodes("function Encoder() { return new Array(242).fill(1); }", "{}", &[1; 242], None);
}

#[test]
fn fields_for_the_encoder_must_be_a_json_object() {
    let text = "function Encoder(o) { return [1]; }";
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(32), "]".repeat(32));
    for fields in ["", "[]", "1", "null", "{", "{\"a\":\u{0}1}", deep.as_str()] {
        let failure = encode(text, fields).result.expect_err(fields);
        assert_eq!((failure.slot, failure.kind), (Slot::Encoder, FailureKind::Output), "{fields:?}");
    }
}

#[test]
fn fields_beside_data_are_warned_of() {
    for (returned, is_warned) in [
        ("{ temperature: 5 }", true),
        ("{ data: null, temperature: 5 }", true),
        ("{ data: {}, temperature: 5 }", false),
        ("{ data: undefined, warnings: [], errors: [] }", false),
        ("{}", false),
    ] {
        let mut harness = Harness::new();
        let functions = harness.load_in(Slot::Decoder, &format!("function decodeUplink() {{ return {returned}; }}"));
        let outcome = harness.decode(&functions, b"x");
        let is_empty = fields(&outcome) == "null";
        assert_eq!(is_empty, !returned.contains("data: {}"), "{returned}");
        let warned = outcome.warnings.iter().filter(|warning| warning.contains("without `data`")).count();
        assert_eq!((warned, outcome.warnings.len()), (usize::from(is_warned), warned), "{returned}");
    }
}

#[test]
fn zero_bytes_in_strings_and_comments_are_read() {
    let mut harness = Harness::new();
    for module in ["", "export "] {
        let text = format!(
            "// \0\n/* \0 */{module}function Decoder(b) {{ return {{ n: 'a\0b'.length, t: `\0`.length, r: /\0/.test('\0') }}; }}"
        );
        harness.check_decodes(&text, b"x", r#"{"n":3,"t":1,"r":true}"#);
    }
    let failure = harness.fail(Slot::Decoder, "function Decoder(b) {\n  return \0{};\n}");
    assert_eq!((failure.kind, failure.line, failure.column), (FailureKind::Syntax, Some(2), Some(10)), "{failure}");
}

#[test]
fn downlinks_are_decoded_by_either_text() {
    let decode = "function decodeDownlink(input) { return { data: { b: input.bytes, p: input.fPort } }; }";
    for (slot, entry) in
        [(Slot::Encoder, "function encodeDownlink() {}"), (Slot::Decoder, "function decodeUplink() {}")]
    {
        let mut harness = Harness::new();
        let functions = harness.load_in(slot, &format!("{decode}\n{entry}"));
        let outcome = harness.sandbox.call(&functions, &call(EntryPoint::DecodeDownlink, &[1, 2]));
        assert_eq!(fields(&outcome), r#"{"b":[1,2],"p":7}"#);
    }
}
