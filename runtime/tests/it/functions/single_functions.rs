//! Normalized fields, and single functions that return their whole result.

use airlock_runtime::{Call, EntryPoint, Failure, FailureKind, Function, Slot, Sources, Value};

use crate::harness::{Harness, call, sources, uplink};

/// The result of `normalizeUplink`, and the warnings.
fn normalized(sources: &Sources) -> (Option<String>, Vec<String>) {
    let mut harness = Harness::new();
    let functions = harness.load(sources);
    let outcome = harness.sandbox.call(&functions, &call(EntryPoint::Uplink, &[21]));
    match outcome.result {
        Ok(Value::Fields { normalized, .. }) => (normalized.map(|json| json.get().to_owned()), outcome.warnings),
        other => panic!("expected fields, got {other:?}"),
    }
}

#[test]
fn fields_are_normalized_if_the_source_can() {
    let decode = "function decodeUplink(input) { return { data: { t: input.bytes[0] } }; }\n";
    let with = |normalize: &str| normalized(&sources(Slot::Decoder, &format!("{decode}{normalize}")));
    for (normalize, expected, warnings) in [
        ("", None, &[][..]),
        (
            "function normalizeUplink(i) { return { data: { air: { temperature: i.data.t } } }; }",
            Some(r#"{"air":{"temperature":21}}"#),
            &[],
        ),
        ("function normalizeUplink(i) { return { data: [i.data], warnings: ['w'] }; }", Some(r#"[{"t":21}]"#), &["w"]),
        ("function normalizeUplink() { return { data: null }; }", None, &[]),
        ("function normalizeUplink() { throw new Error('no'); }", None, &["`normalizeUplink`: Error: no"]),
        ("function normalizeUplink() { return { errors: ['bad'] }; }", None, &["`normalizeUplink`: bad"]),
        (
            "function normalizeUplink() { return 5; }",
            None,
            &["`normalizeUplink`: must return an object with `data`, got a number"],
        ),
        ("function normalizeUplink() { for (;;); }", None, &["`normalizeUplink`: used up its fuel"]),
    ] {
        let (json, said) = with(normalize);
        assert_eq!(
            (json.as_deref(), said),
            (expected, warnings.iter().map(ToString::to_string).collect()),
            "{normalize}"
        );
    }
}

#[test]
fn normalization_gets_the_result_of_the_decoder() {
    let text = "function decodeUplink(input) { return { data: { t: input.bytes[0] } }; }
        function normalizeUplink(input) { input.data.t += 1; return { data: input.data }; }";
    let converter = "function Converter(f) { f.t = 0; return f; }".to_owned();
    let steps = Sources { converter, ..sources(Slot::Decoder, text) };
    assert_eq!(normalized(&steps).0.as_deref(), Some(r#"{"t":22}"#));
    assert_eq!(uplink(&steps, &[21]).0, r#"{"t":0}"#);
    let steps = Sources { validator: "function Validator() { return false; }".to_owned(), ..steps };
    assert_eq!(normalized(&steps).0, None);
}

/// The result or failure of one function of `text`, run alone.
fn attempt(text: &str, function: Function, payload: &str, extra: &str) -> Result<Option<String>, Failure> {
    let mut harness = Harness::new();
    let functions = harness.load(&Sources::single_file(text));
    let (extra, single_function) = (extra.to_owned(), Some(function));
    let call = Call { port: 2, extra, single_function, ..call(EntryPoint::SingleFunction, payload.as_bytes()) };
    harness.sandbox.call(&functions, &call).result.map(|value| match value {
        Value::Returned { json } => json.map(|json| json.get().to_owned()),
        other => panic!("expected what was returned, got {other:?}"),
    })
}

#[test]
fn a_single_function_returns_its_whole_result() {
    let ts013 = "function decodeUplink(i) { return { data: null, errors: ['e'], i: i }; }
        function encodeDownlink(i) { return i; } function decodeDownlink(i) { return i.bytes; } function normalizeUplink(i) { return i; }";
    let v2 = "function Decoder(b, p) { if (p === 2) return; } function Converter(f, p) { return [f, p, fields]; }
        function Validator(f) { return 'odd'; } function Encoder(o, p) { return [o, p, payload]; }";
    let chirpstack3 = "function Decode(p, b, v) { return [p, b, v]; } function Encode(p, o, v) { return [p, o, v]; }";
    for (text, function, payload, extra, expected) in [
        (
            ts013,
            Function::Decoder,
            "A",
            "",
            r#"{"data":null,"errors":["e"],"i":{"bytes":[65],"fPort":2,"recvTime":"2023-11-14T22:13:20.000Z"}}"#,
        ),
        (
            ts013,
            Function::Decoder,
            "",
            r#"{"recvTime":1,"x":2}"#,
            r#"{"data":null,"errors":["e"],"i":{"bytes":[],"fPort":2,"recvTime":1,"x":2}}"#,
        ),
        (ts013, Function::Encoder, "[1]", "", r#"{"data":[1],"fPort":2}"#),
        (ts013, Function::Encoder, "", r#"{"fPort":9}"#, r#"{"fPort":9}"#),
        (ts013, Function::DecodeDownlink, "B", "", "[66]"),
        (ts013, Function::NormalizeUplink, r#"{"a":1}"#, "", r#"{"data":{"a":1}}"#),
        (v2, Function::Decoder, "A", "", "undefined"),
        (v2, Function::Converter, "7", "", "[7,2,7]"),
        (v2, Function::Validator, "{}", "", r#""odd""#),
        (v2, Function::Encoder, r#"{"a":1}"#, "", r#"[{"a":1},2,{"a":1}]"#),
        (chirpstack3, Function::Decoder, "A", r#"{"variables":{"v":1}}"#, r#"[2,[65],{"v":1}]"#),
        (chirpstack3, Function::Decoder, "A", r#"{"v":1}"#, "[2,[65],{}]"),
        (chirpstack3, Function::Decoder, "A", r#"{"variables":1}"#, "[2,[65],{}]"),
        (chirpstack3, Function::Encoder, "{}", "", "[2,{},{}]"),
    ] {
        let returned = attempt(text, function, payload, extra).unwrap().unwrap_or("undefined".to_owned());
        assert_eq!(returned, expected, "{function:?} of {text}");
    }
}

#[test]
fn a_missing_function_or_malformed_input_fails() {
    let encoder = "function Encoder() { throw new Error('x'); }";
    let failure = |function, payload, extra| attempt(encoder, function, payload, extra).unwrap_err();
    let missing = failure(Function::Decoder, "", "");
    assert_eq!((missing.slot, missing.kind), (Slot::Decoder, FailureKind::Syntax));
    let thrown = failure(Function::Encoder, "{}", "");
    assert_eq!((thrown.slot, thrown.kind, thrown.line), (Slot::Encoder, FailureKind::Thrown, Some(1)));
    assert_eq!(failure(Function::Encoder, "{", "").kind, FailureKind::Output);
    assert_eq!(failure(Function::Encoder, &"[".repeat(40), "").kind, FailureKind::Output);
}
