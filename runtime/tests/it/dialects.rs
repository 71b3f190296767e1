//! The calling conventions: what functions get, what they may return, and what becomes of it.

use airlock_runtime::{Dialect, Entry, Kind, Level, Report, Slot, Sources, Value};

use crate::rig::{Rig, call, fields, sources};

/// The fields that `sources` make of `payload`, and whether they are valid.
fn uplink(sources: &Sources, payload: &[u8]) -> (String, bool) {
    let mut rig = Rig::new();
    let functions = rig.load(sources);
    match rig.sandbox.call(&functions, &call(Entry::Uplink, payload)).result {
        Ok(Value::Fields { json, valid, .. }) => (json.get().to_owned(), valid),
        other => panic!("expected fields, got {other:?}"),
    }
}

/// The report of an encoder given `fields`.
fn encode(text: &str, fields: &str) -> Report {
    let mut rig = Rig::new();
    let functions = rig.load_in(Slot::Encoder, text);
    rig.sandbox.call(&functions, &call(Entry::EncodeDownlink, fields.as_bytes()))
}

fn check_encodes(text: &str, fields: &str, bytes: &[u8], port: Option<u8>) {
    match encode(text, fields).result {
        Ok(Value::Bytes { bytes: got, port: on }) => assert_eq!((&got[..], on), (bytes, port), "{text}"),
        other => panic!("expected bytes, got {other:?} from {text}"),
    }
}

/// The logs of a decoder with this body, as their JSON texts.
fn logs(body: &str) -> Vec<(Level, Vec<String>)> {
    let mut rig = Rig::new();
    let functions = rig.load_in(Slot::Decoder, &format!("function Decoder(bytes) {{ {body} }}"));
    rig.decode(&functions, b"x").logs.into_iter().map(|entry| (entry.level, entry.fields)).collect()
}

#[test]
fn each_dialect_gets_its_own_arguments() {
    let mut rig = Rig::new();
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
        rig.check_decodes(text, &[1, 255], expected);
    }
}

#[test]
fn entry_points_are_found_however_they_are_defined() {
    let mut rig = Rig::new();
    for definition in [
        "function Decoder(b) { return { a: b[0] }; }",
        "var Decoder = function (b) { return { a: b[0] }; };",
        "let Decoder = function (b) { return { a: b[0] }; };",
        "const Decoder = (b) => ({ a: b[0] }); // the end",
        "Decoder = function (b) { return { a: b[0] }; }",
        "if (typeof module !== 'undefined') { module.exports = { d: 1 }; }\nfunction Decoder(b) { return { a: b[0] }; }",
    ] {
        rig.check_decodes(definition, &[9], r#"{"a":9}"#);
    }
}

#[test]
fn the_first_dialect_counts_where_a_text_has_several() {
    let all = "function Decode() { return { is: 3 }; } function Decoder() { return { is: 1 }; } function decodeUplink() { return { data: { is: 2 } }; }";
    let mut rig = Rig::new();
    rig.check_decodes(all, b"x", r#"{"is":2}"#);
    for (dialect, expected) in [(Dialect::V2, r#"{"is":1}"#), (Dialect::ChirpStack3, r#"{"is":3}"#)] {
        let chosen = Sources { dialect: Some(dialect), ..sources(Slot::Decoder, all) };
        assert_eq!(uplink(&chosen, b"x").0, expected);
    }
}

#[test]
fn a_text_without_a_fitting_function_is_told_what_was_expected() {
    let failure = Rig::new().fail(Slot::Decoder, "function decode(bytes) { return {}; }");
    assert_eq!(failure.kind, Kind::Syntax);
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
fn a_converter_without_a_decoder_gets_an_empty_object() {
    let converter = sources(Slot::Converter, "function Converter(f, port) { f.port = port; return f; }");
    assert_eq!(uplink(&converter, b"x"), (r#"{"port":7}"#.to_owned(), true));
    let validator = sources(Slot::Validator, "function Validator(f) { return Object.keys(f).length === 0; }");
    assert_eq!(uplink(&validator, b"x"), ("null".to_owned(), true));
}

#[test]
fn ttn_v2_texts_see_their_input_as_globals() {
    let mut rig = Rig::new();
    let decoder = "function Decoder(bytes) { bytes[0] = 0; return { p: payload, port: port }; }";
    rig.check_decodes(decoder, &[5, 6], r#"{"p":[5,6],"port":7}"#);
    rig.check_decodes("var port = 'mine'; function Decoder() { return { port: port }; }", b"x", r#"{"port":"mine"}"#);
    rig.check_decodes(
        "function decodeUplink() { return { data: { t: typeof payload + typeof port } }; }",
        b"x",
        r#"{"t":"undefinedundefined"}"#,
    );
    check_encodes("function Encoder() { return [payload.a, port]; }", r#"{"a":3}"#, &[3, 7], None);
}

#[test]
fn sloppy_mode_code_runs_unchanged() {
    let mut rig = Rig::new();
    rig.check_decodes(
        "function Decoder(b) { undeclared = 010; with ({ x: b[0] }) { return { x: x, y: undeclared }; } }",
        &[4],
        r#"{"x":4,"y":8}"#,
    );
}

#[test]
fn fields_follow_json_stringify() {
    let mut rig = Rig::new();
    for (value, expected) in [
        ("{ b: 1, a: 2, 7: 3 }", r#"{"7":3,"b":1,"a":2}"#),
        ("{ a: undefined, f: function () {}, s: Symbol(), n: null }", r#"{"n":null}"#),
        ("{ a: [1, , undefined, function () {}] }", r#"{"a":[1,null,null,null]}"#),
        (
            "{ n: [0.1 + 0.2, 1e21, 1e-7, -0, 1 / 3, -1.5, 4294967296] }",
            r#"{"n":[0.30000000000000004,1e+21,1e-7,0,0.3333333333333333,-1.5,4294967296]}"#,
        ),
        ("{ s: 'a\"\\\\\\n\\u0001é€😀' }", "{\"s\":\"a\\\"\\\\\\n\\u0001é€😀\"}"),
        ("{ s: 'x\\ud800y' }", "{\"s\":\"x\u{fffd}y\"}"),
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
        rig.check_decodes(&format!("function Decoder() {{ return {value}; }}"), b"x", expected);
    }
}

#[test]
fn numbers_that_json_does_not_have_become_null_with_a_warning() {
    let mut rig = Rig::new();
    let text = "function Decoder() { return { a: NaN, b: { c: [1, -1 / 0] } }; }";
    let functions = rig.load_in(Slot::Decoder, text);
    let report = rig.decode(&functions, b"x");
    assert_eq!(fields(&report), r#"{"a":null,"b":{"c":[1,null]}}"#);
    assert!(report.warnings[0].contains("`a` is NaN"), "{:?}", report.warnings);
    assert!(report.warnings[1].contains("`b.c[1]` is -Infinity"), "{:?}", report.warnings);
}

#[test]
fn results_of_the_wrong_type_are_refused() {
    let mut rig = Rig::new();
    for value in ["[]", "'x'", "1", "null", "undefined", "true", "function () {}", "Promise.resolve({})", "new Date(0)"]
    {
        rig.check_fails(Slot::Decoder, Kind::Output, &format!("function Decoder() {{ return {value}; }}"));
        rig.check_fails(Slot::Converter, Kind::Output, &format!("function Converter() {{ return {value}; }}"));
        let data = format!("function decodeUplink() {{ return {{ data: {value} }}; }}");
        // That there is nothing to say is no mistake.
        if matches!(value, "null" | "undefined") {
            rig.check_decodes(&data, b"x", "null");
        } else {
            rig.check_fails(Slot::Decoder, Kind::Output, &data);
        }
    }
    for value in ["1", "undefined", "new Boolean(true)", "[]", "'true'", "Promise.resolve(true)"] {
        rig.check_fails(Slot::Validator, Kind::Output, &format!("function Validator() {{ return {value}; }}"));
    }
    rig.check_fails(Slot::Decoder, Kind::Output, "async function Decoder() { return {}; }");
}

#[test]
fn values_without_json_are_refused() {
    let mut rig = Rig::new();
    for body in [
        "var a = {}; a.a = a; return a;",
        "return { n: 10n };",
        "var a = {}; for (var i = 0; i < 32; i++) a = { a: a }; return a;",
        "var a = {}; for (var i = 0; i < 1025; i++) a['k' + i] = 0; return a;",
        "return { a: 'x'.repeat(16384) };",
        "return { a: new Array(5000).fill(1000) };",
    ] {
        rig.check_fails(Slot::Decoder, Kind::Output, &format!("function Decoder() {{ {body} }}"));
    }
    rig.check_decodes(
        "function Decoder() { var a = 1; for (var i = 0; i < 31; i++) a = [a]; return { a: a }; }",
        b"x",
        &format!("{{\"a\":{}1{}}}", "[".repeat(31), "]".repeat(31)),
    );
}

#[test]
fn remarks_of_ts013_become_warnings_and_failures() {
    let mut rig = Rig::new();
    let text = "function decodeUplink(input) { return { data: { a: 1 }, warnings: ['low battery'], errors: input.bytes[0] ? ['bad', 'worse'] : [] }; }";
    let functions = rig.load_in(Slot::Decoder, text);
    let report = rig.decode(&functions, &[0]);
    assert_eq!((fields(&report), &report.warnings[..]), (r#"{"a":1}"#, &["low battery".to_owned()][..]));
    let report = rig.decode(&functions, &[1]);
    let failure = report.result.expect_err("errors are a failure");
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Thrown, "bad; worse"));
    assert_eq!(report.warnings, ["low battery"]);
}

#[test]
fn encoders_make_bytes() {
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
fn bytes_that_cannot_be_sent_are_refused() {
    for value in ["256", "-1", "1.5", "NaN", "'1'", "true", "null", "undefined", "[1]", "1n"] {
        let failure = encode(&format!("function Encoder() {{ return [0, {value}]; }}"), "{}").result.expect_err(value);
        assert_eq!((failure.slot, failure.kind), (Slot::Encoder, Kind::Output), "{value}");
        assert!(failure.message.contains("index 1"), "{failure}");
    }
    for value in ["{ length: 1, 0: 1 }", "'x'", "null", "undefined", "new Array(243).fill(0)", "7"] {
        let failure = encode(&format!("function Encoder() {{ return {value}; }}"), "{}").result.expect_err(value);
        assert_eq!(failure.kind, Kind::Output, "{value}");
    }
    check_encodes("function Encoder() { return new Array(242).fill(1); }", "{}", &[1; 242], None);
}

#[test]
fn fields_for_the_encoder_must_be_a_json_object() {
    let text = "function Encoder(o) { return [1]; }";
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(32), "]".repeat(32));
    for fields in ["", "[]", "1", "null", "{", "{\"a\":\u{0}1}", deep.as_str()] {
        let failure = encode(text, fields).result.expect_err(fields);
        assert_eq!((failure.slot, failure.kind), (Slot::Encoder, Kind::Output), "{fields:?}");
    }
}

#[test]
fn downlinks_are_decoded_by_either_text() {
    let decode = "function decodeDownlink(input) { return { data: { b: input.bytes, p: input.fPort } }; }";
    for (slot, entry) in
        [(Slot::Encoder, "function encodeDownlink() {}"), (Slot::Decoder, "function decodeUplink() {}")]
    {
        let mut rig = Rig::new();
        let functions = rig.load_in(slot, &format!("{decode}\n{entry}"));
        let report = rig.sandbox.call(&functions, &call(Entry::DecodeDownlink, &[1, 2]));
        assert_eq!(fields(&report), r#"{"b":[1,2],"p":7}"#);
    }
}

#[test]
fn failures_name_the_line_of_the_users_own_text() {
    let mut rig = Rig::new();
    for (text, kind, line) in [
        ("function Decoder() {\n  return { a: }\n}", Kind::Syntax, 2),
        ("function Decoder() {\n  throw new Error('boom');\n}", Kind::Thrown, 2),
        ("function f(x) {\n  return x.y.z;\n}\nfunction Decoder() {\n  return f({});\n}", Kind::Thrown, 2),
        ("\n\nnull.x;\nfunction Decoder() {}", Kind::Thrown, 3),
        ("function Decoder(b) {\n  return {\n    a: b[0],\n    c: missing };\n}", Kind::Thrown, 4),
        ("function Decoder(b) {\n  for (;;)\n    ;\n}", Kind::Fuel, 3),
        ("function Decoder() {\n  var i = 0;\n  while (true) i++;\n}", Kind::Fuel, 3),
        ("function Decoder(n) {\n  return Decoder(n);\n}", Kind::Stack, 2),
    ] {
        let failure = rig.fail(Slot::Decoder, text);
        assert_eq!((failure.kind, failure.line), (kind, Some(line)), "{failure} in {text}");
        assert!(failure.column > Some(1), "{failure} in {text}");
    }
}

#[test]
fn whatever_is_thrown_is_told_in_bounded_words() {
    let mut rig = Rig::new();
    for (thrown, message) in [
        ("new TypeError('no')", "TypeError: no"),
        ("'text'", "text"),
        ("null", "null"),
        ("undefined", "undefined"),
        ("42", "42"),
        ("{ code: 5 }", r#"{"code":5}"#),
        ("Symbol('x')", "a value that cannot be shown"),
        ("{ toJSON: function () { throw 1; }, toString: function () { throw 2; } }", "a value that cannot be shown"),
        ("Object.assign(new Error('x'), { message: 'own' })", "Error: own"),
    ] {
        let failure = rig.fail(Slot::Decoder, &format!("function Decoder() {{ throw {thrown}; }}"));
        assert_eq!((failure.kind, failure.message.as_str()), (Kind::Thrown, message), "{thrown}");
    }
    let long = rig.fail(Slot::Decoder, "function Decoder() { throw new Error('é'.repeat(5000)); }");
    assert!(long.message.len() <= 1024 && long.message.ends_with('…'), "{}", long.message.len());
}

#[test]
fn logs_keep_level_order_and_json() {
    let logged = logs(
        "console.log('hi', 11, [1, 'é'], { b: 1, a: NaN }); console.warn(); console.error(new Error('e')); console.debug(undefined, null, function () {}); return {};",
    );
    let expected: [(Level, &[&str]); 4] = [
        (Level::Info, &[r#""hi""#, "11", r#"[1,"é"]"#, r#"{"b":1,"a":null}"#]),
        (Level::Warn, &[]),
        (Level::Error, &[r#"{"message":"e","name":"Error"}"#]),
        (Level::Debug, &["undefined", "null", "undefined"]),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(level, fields)| (*level, fields.iter().map(ToString::to_string).collect::<Vec<_>>()))
        .collect();
    assert_eq!(logged, expected);
}

#[test]
fn values_that_cannot_be_logged_leave_a_placeholder() {
    let logged =
        logs("var a = {}; a.a = a; console.log(a, 10n, Symbol(), { get x() { throw 1; } }, new Date(0)); return {};");
    assert_eq!(
        logged[0].1,
        [
            r#""[circular]""#,
            r#""10n""#,
            r#""[symbol]""#,
            r#""[threw while it was shown]""#,
            r#""1970-01-01T00:00:00.000Z""#
        ]
    );
}

#[test]
fn logs_are_bounded_and_say_so() {
    let many = logs("for (var i = 0; i < 100; i++) console.log(i); return {};");
    assert_eq!(many.len(), 65);
    assert_eq!(many[64], (Level::Warn, vec![r#""further log entries were dropped""#.to_owned()]));
    let long = logs("console.log('x'.repeat(5000)); return {};");
    assert_eq!((long[0].1[0].len(), long[0].1[0].ends_with('…')), (1024, true));
    let bytes: usize = logs("for (var i = 0; i < 60; i++) console.log('x'.repeat(900)); return {};")
        .iter()
        .flat_map(|entry| &entry.1)
        .map(String::len)
        .sum();
    assert!(bytes <= 16 * 1024, "{bytes}");
}

#[test]
fn logs_up_to_a_failure_are_kept() {
    let mut rig = Rig::new();
    let functions = rig.load_in(Slot::Decoder, "function Decoder() { console.log('before'); throw 1; }");
    let report = rig.decode(&functions, b"x");
    assert!(report.result.is_err());
    assert_eq!((report.logs.len(), report.logs[0].slot), (1, Slot::Decoder));
}

#[test]
fn time_and_chance_are_the_messages_own() {
    let mut rig = Rig::new();
    let text = "function Decoder() { return { now: Date.now(), zone: new Date().getTimezoneOffset(), r: [Math.random(), Math.random()] }; }";
    let functions = rig.load_in(Slot::Decoder, text);
    let first = fields(&rig.decode(&functions, b"x")).to_owned();
    assert!(first.starts_with(r#"{"now":1700000000000,"zone":0,"r":[0."#), "{first}");
    assert_eq!(fields(&rig.decode(&functions, b"x")), first);
    let mut other = call(Entry::Uplink, b"x");
    other.seed = 43;
    assert_ne!(fields(&rig.sandbox.call(&functions, &other)), first);
}

#[test]
fn texts_cannot_reach_what_the_runtime_uses() {
    let mut rig = Rig::new();
    let hostile = "JSON.stringify = JSON.parse = null; Object.keys = Array.isArray = function () { throw 1; };\n\
        Object.prototype.toString = null; console = undefined; Math.random = null;\n\
        Object.defineProperty(Array.prototype, '0', { set: function () { throw 2; } });\n\
        function Decoder(bytes) { return { a: bytes }; }";
    rig.check_decodes(hostile, &[1, 2], r#"{"a":[1,2]}"#);
}
