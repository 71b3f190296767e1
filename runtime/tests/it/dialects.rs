//! The calling conventions: what functions get, what they may return, and what becomes of it.

use airlock_runtime::{Call, Dialect, Entry, Failure, Function, Kind, Level, Report, Slot, Sources, Trial, Value};

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
fn entry_points_are_found_where_they_are_only_exported() {
    let mut rig = Rig::new();
    for definition in [
        "module.exports = { Decoder: function (b) { return { a: b[0] }; } };",
        "exports.Decoder = (b) => ({ a: b[0] });",
        "(function () { function Decoder(b) { return { a: b[0] }; } module.exports.Decoder = Decoder; })();",
        "module = { exports: { Decoder(b) { return { a: b[0] }; } } };",
    ] {
        rig.check_decodes(definition, &[9], r#"{"a":9}"#);
    }
    for broken in ["module = null;", "module.exports = undefined; exports = null;", "exports = 5;"] {
        rig.check_decodes(&format!("{broken} function Decoder(b) {{ return {{ a: b[0] }}; }}"), &[9], r#"{"a":9}"#);
        rig.check_fails(Slot::Decoder, Kind::Syntax, broken);
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
fn what_is_handed_on_is_at_home_where_it_arrives() {
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
fn circles_and_proxies_are_handed_on_unharmed() {
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
fn a_ts013_decoder_may_have_nothing_to_say() {
    let nothing = "function decodeUplink() { return { data: null, warnings: ['asleep'] }; }";
    let mut rig = Rig::new();
    let functions = rig.load_in(Slot::Decoder, nothing);
    let report = rig.decode(&functions, b"x");
    assert_eq!((fields(&report), &report.warnings[..]), ("null", &["asleep".to_owned()][..]));
    let converter = "function Converter(f) { f.n = Object.keys(f).length; return f; }".to_owned();
    let steps = Sources { converter, ..sources(Slot::Decoder, nothing) };
    assert_eq!(uplink(&steps, b"x").0, r#"{"n":0}"#);
}

/// What `normalizeUplink` makes of a message, and the warnings.
fn normalized(sources: &Sources) -> (Option<String>, Vec<String>) {
    let mut rig = Rig::new();
    let functions = rig.load(sources);
    let report = rig.sandbox.call(&functions, &call(Entry::Uplink, &[21]));
    match report.result {
        Ok(Value::Fields { normalized, .. }) => (normalized.map(|json| json.get().to_owned()), report.warnings),
        other => panic!("expected fields, got {other:?}"),
    }
}

#[test]
fn fields_are_normalized_where_the_text_can() {
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
fn what_is_normalized_is_what_the_decoder_gave() {
    let text = "function decodeUplink(input) { return { data: { t: input.bytes[0] } }; }
        function normalizeUplink(input) { input.data.t += 1; return { data: input.data }; }";
    let converter = "function Converter(f) { f.t = 0; return f; }".to_owned();
    let steps = Sources { converter, ..sources(Slot::Decoder, text) };
    assert_eq!(normalized(&steps).0.as_deref(), Some(r#"{"t":22}"#));
    assert_eq!(uplink(&steps, &[21]).0, r#"{"t":0}"#);
    let steps = Sources { validator: "function Validator() { return false; }".to_owned(), ..steps };
    assert_eq!(normalized(&steps).0, None);
}

/// What one function of `text` returns to a trial, or how it fails.
fn attempt(text: &str, function: Function, payload: &str, extra: &str) -> Result<Option<String>, Failure> {
    let mut rig = Rig::new();
    let functions = rig.load(&Sources::whole(text));
    let trial = Some(Trial { function, extra: extra.to_owned() });
    let call = Call { port: 2, trial, ..call(Entry::Trial, payload.as_bytes()) };
    rig.sandbox.call(&functions, &call).result.map(|value| match value {
        Value::Returned { json } => json.map(|json| json.get().to_owned()),
        other => panic!("expected what was returned, got {other:?}"),
    })
}

#[test]
fn a_trial_answers_with_all_that_a_function_returns() {
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
        (chirpstack3, Function::Decoder, "A", r#"{"v":1}"#, r#"[2,[65],{"v":1}]"#),
        (chirpstack3, Function::Encoder, "{}", "", "[2,{},{}]"),
    ] {
        let returned = attempt(text, function, payload, extra).unwrap().unwrap_or("undefined".to_owned());
        assert_eq!(returned, expected, "{function:?} of {text}");
    }
}

#[test]
fn a_trial_of_what_is_not_there_or_of_nonsense_fails() {
    let encoder = "function Encoder() { throw new Error('x'); }";
    let failure = |function, payload, extra| attempt(encoder, function, payload, extra).unwrap_err();
    let missing = failure(Function::Decoder, "", "");
    assert_eq!((missing.slot, missing.kind), (Slot::Decoder, Kind::Syntax));
    let thrown = failure(Function::Encoder, "{}", "");
    assert_eq!((thrown.slot, thrown.kind, thrown.line), (Slot::Encoder, Kind::Thrown, Some(1)));
    assert_eq!(failure(Function::Encoder, "{", "").kind, Kind::Output);
    assert_eq!(failure(Function::Encoder, &"[".repeat(40), "").kind, Kind::Output);
}

#[test]
fn a_whole_text_needs_one_function_of_any_kind() {
    let engine = Rig::new().engine;
    let failure = engine.load(&Sources::whole("var nothing;"), engine.limits()).unwrap_err();
    assert!(failure.message.contains("`decodeUplink`") && failure.message.contains("`Encode`"), "{failure}");
    assert!(engine.load(&Sources::whole("function normalizeUplink() {}"), engine.limits()).is_ok());
}

#[test]
fn a_text_that_is_decoder_and_encoder_is_evaluated_once() {
    let text = "var evaluations = (globalThis.evaluations || 0) + 1;
        function decodeUplink(i) { return { data: { n: evaluations } }; }
        function encodeDownlink(i) { if (i.data.bad) throw new Error('bad'); return { bytes: [evaluations] }; }";
    let mut rig = Rig::new();
    let twice = Sources { encoder: text.to_owned(), ..sources(Slot::Decoder, text) };
    let functions = rig.load(&twice);
    assert_eq!(fields(&rig.sandbox.call(&functions, &call(Entry::Uplink, b"x"))), r#"{"n":1}"#);
    let encoded = rig.sandbox.call(&functions, &call(Entry::EncodeDownlink, b"{}")).result;
    assert!(matches!(encoded, Ok(Value::Bytes { bytes, .. }) if bytes == [1]));
    let failure = rig.sandbox.call(&functions, &call(Entry::EncodeDownlink, br#"{"bad":1}"#)).result.unwrap_err();
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
fn fuel_used_up_inside_a_built_in_has_a_line_and_the_logs_until_then() {
    let mut rig = Rig::with_limits(|limits| limits.fuel = 20_000_000);
    for endless in [
        "for (;;) list.sort();",
        "/^(a+)+$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!');",
        "Array.from({ length: 1e9 });",
        "[].indexOf.call(new Array(1e7), 7);",
        "new Array(4e9).join('x');",
        "JSON.parse('[' + '1,'.repeat(50000) + '1]', function (k, v) { return [v]; });",
        "for (var n = 2n ** 50000n;; n *= n);",
    ] {
        let text = format!(
            "function Decoder(b) {{\n  console.log('before');\n  var list = new Array(20000).fill('x');\n  {endless}\n  return {{}};\n}}"
        );
        let functions = rig.load_in(Slot::Decoder, &text);
        let report = rig.decode(&functions, b"x");
        let failure = report.result.expect_err(endless);
        assert_eq!((failure.kind, failure.line), (Kind::Fuel, Some(4)), "{failure} in {endless}");
        assert_eq!(report.logs.len(), 1, "{endless}");
    }
}

#[test]
fn whatever_is_thrown_has_the_line_of_its_throw() {
    let mut rig = Rig::new();
    for thrown in ["'text'", "null", "undefined", "{ code: 5 }", "new Error('e')", "Object.create(Error.prototype)"] {
        let text = format!(
            "function f() {{\n  try {{ throw 1; }} catch (e) {{}}\n  throw {thrown};\n}}\nfunction Decoder() {{ f(); }}"
        );
        let failure = rig.fail(Slot::Decoder, &text);
        assert_eq!((failure.kind, failure.line), (Kind::Thrown, Some(3)), "{failure} for {thrown}");
    }
    let none = rig.fail(Slot::Decoder, "function Decoder() { try { throw 1; } catch (e) {} return 5; }");
    assert_eq!((none.kind, none.line), (Kind::Output, None));
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
