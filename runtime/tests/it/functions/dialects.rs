//! The dialects: which function is called, with which input, and what it passes on.

use airlock_runtime::{Dialect, EntryPoint, FailureKind, Slot, Sources, Value};

use crate::harness::{Harness, call, check_encodes, fields, sources, uplink};

#[test]
fn each_dialect_gets_its_own_arguments() {
    let mut harness = Harness::new();
    for (text, expected) in [
        (
            "function Decoder(bytes, port) { return { bytes, port, n: arguments.length }; }",
            r#"{"bytes":[1,255],"port":7,"n":2}"#,
        ),
        (
            "function decodeUplink(input) { return { data: input }; }",
            r#"{"bytes":[1,255],"fPort":7,"recvTime":"2023-11-14T22:13:20.000Z"}"#,
        ),
        (
            "function Decode(fPort, bytes, variables) { return { fPort, bytes, variables }; }",
            r#"{"fPort":7,"bytes":[1,255],"variables":{}}"#,
        ),
    ] {
        harness.check_decodes(text, &[1, 255], expected);
    }
}

#[test]
fn entry_points_are_found_however_they_are_defined() {
    let mut harness = Harness::new();
    for definition in [
        "function Decoder(b) { return { a: b[0] }; }",
        "var Decoder = function (b) { return { a: b[0] }; };",
        "let Decoder = function (b) { return { a: b[0] }; };",
        "const Decoder = (b) => ({ a: b[0] }); // the end",
        "Decoder = function (b) { return { a: b[0] }; }",
        "if (typeof module !== 'undefined') { module.exports = { d: 1 }; }\nfunction Decoder(b) { return { a: b[0] }; }",
    ] {
        harness.check_decodes(definition, &[9], r#"{"a":9}"#);
    }
}

#[test]
fn entry_points_are_found_where_they_are_only_exported() {
    let mut harness = Harness::new();
    for definition in [
        "module.exports = { Decoder: function (b) { return { a: b[0] }; } };",
        "exports.Decoder = (b) => ({ a: b[0] });",
        "(function () { function Decoder(b) { return { a: b[0] }; } module.exports.Decoder = Decoder; })();",
        "module = { exports: { Decoder(b) { return { a: b[0] }; } } };",
    ] {
        harness.check_decodes(definition, &[9], r#"{"a":9}"#);
    }
    for broken in ["module = null;", "module.exports = undefined; exports = null;", "exports = 5;"] {
        harness.check_decodes(&format!("{broken} function Decoder(b) {{ return {{ a: b[0] }}; }}"), &[9], r#"{"a":9}"#);
        harness.check_fails(Slot::Decoder, FailureKind::Syntax, broken);
    }
}

#[test]
fn the_first_dialect_wins_if_a_source_has_several() {
    let all = "function Decode() { return { is: 3 }; } function Decoder() { return { is: 1 }; } function decodeUplink() { return { data: { is: 2 } }; }";
    let mut harness = Harness::new();
    harness.check_decodes(all, b"x", r#"{"is":2}"#);
    for (dialect, expected) in [(Dialect::V2, r#"{"is":1}"#), (Dialect::ChirpStack3, r#"{"is":3}"#)] {
        let chosen = Sources { dialect: Some(dialect), ..sources(Slot::Decoder, all) };
        assert_eq!(uplink(&chosen, b"x").0, expected);
    }
}

#[test]
fn a_source_without_a_suitable_function_fails_with_the_expected_names() {
    let failure = Harness::new().fail(Slot::Decoder, "function decode(bytes) { return {}; }");
    assert_eq!(failure.kind, FailureKind::Syntax);
    assert!(failure.message.contains("`decodeUplink`, `Decoder`, `Decode`"), "{failure}");
}

#[test]
fn decoder_converter_and_validator_run_one_after_the_other() {
    let steps = |validator: &str| {
        Sources {
        decoder: "function Decoder(bytes) { return { t: bytes[0] }; } function helper() { return 1; }".to_owned(),
        converter: "function helper() { return 10; } function Converter(decoded, port) { decoded.t /= helper(); decoded.port = port; return decoded; }".to_owned(),
        validator: validator.to_owned(),
        ..Sources::default()
    }
    };
    let expected = r#"{"t":24.5,"port":7}"#.to_owned();
    assert_eq!(uplink(&steps("function Validator(f) { return f.t < 25; }"), &[245]), (expected.clone(), true));
    assert_eq!(uplink(&steps("function Validator(f, port) { return port === 8; }"), &[245]), (expected, false));
}

#[test]
fn values_get_the_prototypes_of_the_next_realm() {
    let decoder = "Object.prototype.polluted = Array.prototype.polluted = 1;
        function Decoder() { return { list: [[1]], at: new Date(5), nested: { more: {} }, frozen: Object.freeze({}) }; }";
    let converter = "function Converter(d) {
        var homes = [d instanceof Object, d.list instanceof Array, d.list[0].constructor === Array,
            d.at instanceof Date, d.nested.more instanceof Object, d.constructor === Object, d.polluted === undefined];
        return { homes: homes.every(Boolean), d: d };
    }";
    let validator =
        "function Validator(c) { return c.d.list[0] instanceof Array && c.d.nested.constructor === Object; }";
    let steps = Sources {
        decoder: decoder.to_owned(),
        converter: converter.to_owned(),
        validator: validator.to_owned(),
        ..Sources::default()
    };
    let expected =
        r#"{"homes":true,"d":{"list":[[1]],"at":"1970-01-01T00:00:00.005Z","nested":{"more":{}},"frozen":{}}}"#;
    assert_eq!(uplink(&steps, b"x"), (expected.to_owned(), true));
}

#[test]
fn cycles_and_proxies_are_passed_on_unchanged() {
    let steps = |value: &str| Sources {
        decoder: format!("function Decoder() {{ var o = {{ n: 1 }}; {value} return o; }}"),
        converter: "function Converter(d) { return { n: d.n }; }".to_owned(),
        ..Sources::default()
    };
    for value in [
        "o.o = o;",
        "o = new Proxy(o, {});",
        "o.p = new Proxy({}, { getPrototypeOf: function () { throw 1; } });",
        "Object.defineProperty(o, 'g', { get: function () { throw 1; }, enumerable: true });",
        "o = Object.assign(Object.create(null), o);",
        "o.list = [o, [o]];",
    ] {
        assert_eq!(uplink(&steps(value), b"x").0, r#"{"n":1}"#, "{value}");
    }
}

#[test]
fn a_converter_without_a_decoder_gets_an_empty_object() {
    let converter = sources(Slot::Converter, "function Converter(f, port) { f.port = port; return f; }");
    assert_eq!(uplink(&converter, b"x"), (r#"{"port":7}"#.to_owned(), true));
    let validator = sources(Slot::Validator, "function Validator(f) { return Object.keys(f).length === 0; }");
    assert_eq!(uplink(&validator, b"x"), ("null".to_owned(), true));
}

#[test]
fn ttn_v2_functions_see_their_input_as_globals() {
    let mut harness = Harness::new();
    let decoder = "function Decoder(bytes) { bytes[0] = 0; return { p: payload, port: port }; }";
    harness.check_decodes(decoder, &[5, 6], r#"{"p":[5,6],"port":7}"#);
    harness.check_decodes(
        "var port = 'mine'; function Decoder() { return { port: port }; }",
        b"x",
        r#"{"port":"mine"}"#,
    );
    harness.check_decodes(
        "function decodeUplink() { return { data: { t: typeof payload + typeof port } }; }",
        b"x",
        r#"{"t":"undefinedundefined"}"#,
    );
    check_encodes("function Encoder() { return [payload.a, port]; }", r#"{"a":3}"#, &[3, 7], None);
}

#[test]
fn sloppy_mode_code_runs_unchanged() {
    let mut harness = Harness::new();
    harness.check_decodes(
        "function Decoder(b) { undeclared = 010; with ({ x: b[0] }) { return { x: x, y: undeclared }; } }",
        &[4],
        r#"{"x":4,"y":8}"#,
    );
}

#[test]
fn a_single_file_needs_at_least_one_function() {
    let engine = Harness::new().engine;
    let failure = engine.load(&Sources::single_file("var nothing;"), engine.limits()).unwrap_err();
    assert!(failure.message.contains("`decodeUplink`") && failure.message.contains("`Encode`"), "{failure}");
    assert!(engine.load(&Sources::single_file("function normalizeUplink() {}"), engine.limits()).is_ok());
}

#[test]
fn a_source_used_as_decoder_and_encoder_is_evaluated_once() {
    let text = "var evaluations = (globalThis.evaluations || 0) + 1;
        function decodeUplink(i) { return { data: { n: evaluations } }; }
        function encodeDownlink(i) { if (i.data.bad) throw new Error('bad'); return { bytes: [evaluations] }; }";
    let mut harness = Harness::new();
    let twice = Sources { encoder: text.to_owned(), ..sources(Slot::Decoder, text) };
    let functions = harness.load(&twice);
    assert_eq!(fields(&harness.sandbox.call(&functions, &call(EntryPoint::Uplink, b"x"))), r#"{"n":1}"#);
    let encoded = harness.sandbox.call(&functions, &call(EntryPoint::EncodeDownlink, b"{}")).result;
    assert!(matches!(encoded, Ok(Value::Bytes { bytes, .. }) if bytes == [1]));
    let failure =
        harness.sandbox.call(&functions, &call(EntryPoint::EncodeDownlink, br#"{"bad":1}"#)).result.unwrap_err();
    assert_eq!((failure.slot, failure.line), (Slot::Encoder, Some(3)), "{failure}");
}

#[test]
fn converters_and_validators_combine_with_any_dialect() {
    let steps = Sources {
        converter: "function Converter(f) { f.c = 1; return f; }".to_owned(),
        dialect: Some(Dialect::Ts013),
        ..sources(Slot::Decoder, "function decodeUplink() { return { data: { d: 1 } }; }")
    };
    assert_eq!(uplink(&steps, b"x").0, r#"{"d":1,"c":1}"#);
}

#[test]
fn time_and_random_numbers_come_from_the_message() {
    let mut harness = Harness::new();
    let text = "function Decoder() { return { now: Date.now(), zone: new Date().getTimezoneOffset(), r: [Math.random(), Math.random()] }; }";
    let functions = harness.load_in(Slot::Decoder, text);
    let first = fields(&harness.decode(&functions, b"x")).to_owned();
    assert!(first.starts_with(r#"{"now":1700000000000,"zone":0,"r":[0."#), "{first}");
    assert_eq!(fields(&harness.decode(&functions, b"x")), first);
    let mut other = call(EntryPoint::Uplink, b"x");
    other.seed = 43;
    assert_ne!(fields(&harness.sandbox.call(&functions, &other)), first);
}

#[test]
fn sources_cannot_reach_runtime_internals() {
    let mut harness = Harness::new();
    let hostile = "JSON.stringify = JSON.parse = null; Object.keys = Array.isArray = function () { throw 1; };\n\
        Object.prototype.toString = null; console = undefined; Math.random = null;\n\
        Object.defineProperty(Array.prototype, '0', { set: function () { throw 2; } });\n\
        function Decoder(bytes) { return { a: bytes }; }";
    harness.check_decodes(hostile, &[1, 2], r#"{"a":[1,2]}"#);
}
