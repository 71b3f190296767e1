//! The failure and logs of a failing function.

use airlock_runtime::{Call, EntryPoint, FailureKind, Function, LogLevel, Slot, Sources};

use crate::harness::{Harness, call};

/// The logs of a decoder with this body, as JSON.
fn logs(body: &str) -> Vec<(LogLevel, Vec<String>)> {
    let mut harness = Harness::new();
    let functions = harness.load_in(Slot::Decoder, &format!("function Decoder(bytes) {{ {body} }}"));
    harness.decode(&functions, b"x").logs.into_iter().map(|entry| (entry.level, entry.fields)).collect()
}

#[test]
fn failures_name_the_line_in_the_source() {
    let mut harness = Harness::new();
    for (text, kind, line) in [
        ("function Decoder() {\n  return { a: }\n}", FailureKind::Syntax, 2),
        ("function Decoder() {\n  throw new Error('boom');\n}", FailureKind::Thrown, 2),
        ("function f(x) {\n  return x.y.z;\n}\nfunction Decoder() {\n  return f({});\n}", FailureKind::Thrown, 2),
        ("\n\nnull.x;\nfunction Decoder() {}", FailureKind::Thrown, 3),
        ("function Decoder(b) {\n  return {\n    a: b[0],\n    c: missing };\n}", FailureKind::Thrown, 4),
        ("function Decoder(b) {\n  for (;;)\n    ;\n}", FailureKind::Fuel, 3),
        ("function Decoder() {\n  var i = 0;\n  while (true) i++;\n}", FailureKind::Fuel, 3),
        ("function Decoder(n) {\n  return Decoder(n);\n}", FailureKind::Stack, 2),
    ] {
        let failure = harness.fail(Slot::Decoder, text);
        assert_eq!((failure.kind, failure.line), (kind, Some(line)), "{failure} in {text}");
        assert!(failure.column > Some(1), "{failure} in {text}");
    }
}

#[test]
fn running_out_of_fuel_in_a_built_in_reports_line_and_logs() {
    let mut harness = Harness::with_limits(|limits| limits.fuel = 20_000_000);
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
        let functions = harness.load_in(Slot::Decoder, &text);
        let outcome = harness.decode(&functions, b"x");
        let failure = outcome.result.expect_err(endless);
        assert_eq!((failure.kind, failure.line), (FailureKind::Fuel, Some(4)), "{failure} in {endless}");
        assert_eq!(outcome.logs.len(), 1, "{endless}");
    }
}

#[test]
fn every_thrown_value_has_the_line_of_its_throw() {
    let mut harness = Harness::new();
    for thrown in ["'text'", "null", "undefined", "{ code: 5 }", "new Error('e')", "Object.create(Error.prototype)"] {
        let text = format!(
            "function f() {{\n  try {{ throw 1; }} catch (e) {{}}\n  throw {thrown};\n}}\nfunction Decoder() {{ f(); }}"
        );
        let failure = harness.fail(Slot::Decoder, &text);
        assert_eq!((failure.kind, failure.line), (FailureKind::Thrown, Some(3)), "{failure} for {thrown}");
    }
    let none = harness.fail(Slot::Decoder, "function Decoder() { try { throw 1; } catch (e) {} return 5; }");
    assert_eq!((none.kind, none.line), (FailureKind::Output, None));
}

#[test]
fn every_thrown_value_is_described_within_the_limit() {
    let mut harness = Harness::new();
    for (thrown, message) in [
        ("new TypeError('no')", "TypeError: no"),
        ("'text'", "text"),
        ("null", "null"),
        ("undefined", "undefined"),
        ("42", "42"),
        ("{ code: 5 }", r#"{"code":5}"#),
        ("new Own('m')", "Error: m"),
        ("{ toString: function () { return 'by its text'; } }", "by its text"),
        ("[1, { a: 2 }]", r#"[1,{"a":2}]"#),
        ("Symbol('x')", "a value that cannot be shown"),
        ("{ toJSON: function () { throw 1; }, toString: function () { throw 2; } }", "a value that cannot be shown"),
        ("Object.assign(new Error('x'), { message: 'own' })", "Error: own"),
    ] {
        let own = "function Own(m) { this.message = m; }\nOwn.prototype = Object.create(Error.prototype);";
        let failure = harness.fail(Slot::Decoder, &format!("{own}\nfunction Decoder() {{ throw {thrown}; }}"));
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Thrown, message), "{thrown}");
    }
    let long = harness.fail(Slot::Decoder, "function Decoder() { throw new Error('é'.repeat(5000)); }");
    assert!(long.message.len() <= 1024 && long.message.ends_with('…'), "{}", long.message.len());
}

/// Scripts that recurse too deeply: functions that built-ins call, and built-ins that call themselves.
const THROWING: &[&str] = &[
    "(function f() { return [1].map(f); })()",
    "(function f() { return [2, 1].sort(f); })()",
    "(function f() { return 'x'.replace(/x/, f); })()",
    "(function f() { return f.apply(null, [1]); })()",
    "(function f() { return Reflect.construct(f, []); })()",
    "var o = { toJSON: function () { return JSON.stringify(o); } }; JSON.stringify(o)",
    "var o = { get x() { return o.x; } }; o.x",
    "var o = { toString: function () { return '' + o; } }; '' + o",
    "var p = new Proxy({}, { get: function (t, k, r) { return r[k]; } }); p.x",
    "var p = {}; for (var i = 0; i < 20000; i++) p = new Proxy(p, {}); p.x",
    "var a = []; for (var i = 0; i < 20000; i++) a = [a]; String(a)",
    "JSON.parse('[[1]]', function f() { return JSON.parse('[1]', f); })",
    "var g = { *[Symbol.iterator]() { yield* g; } }; Array.from(g)",
    "class A { constructor() { new A(); } } new A()",
];
const ENDING: &[&str] = &[
    "var a = []; for (var i = 0; i < 20000; i++) a = [a]; a.flat(Infinity)",
    "var a = []; for (var i = 0; i < 20000; i++) a = [a]; JSON.stringify(a)",
    "JSON.parse('['.repeat(20000))",
    "eval('['.repeat(20000))",
    "new Function('{'.repeat(20000))",
];

#[test]
fn recursion_that_is_too_deep_throws_a_range_error_or_ends_the_message() {
    let mut harness = Harness::new();
    let caught = |recursion: &str| {
        format!(
            "function Decoder() {{\n  try {{ {recursion}; }} catch (e) {{ return {{ range: e instanceof RangeError }}; }}\n}}"
        )
    };
    for recursion in THROWING {
        harness.check_decodes(&caught(recursion), b"x", r#"{"range":true}"#);
    }
    for recursion in ENDING {
        let failure = harness.fail(Slot::Decoder, &caught(recursion));
        assert_eq!((failure.kind, failure.line), (FailureKind::Stack, Some(2)), "{failure} in {recursion}");
    }
}

#[test]
fn a_character_that_no_script_may_have_is_named() {
    let mut harness = Harness::new();
    for (text, named) in
        [("var\u{200b} a;", "U+200B"), ("var a = \u{201c}x\u{201d};", "U+201C"), ("var 👍;", "U+1F44D")]
    {
        let failure = harness.fail(Slot::Decoder, &format!("{text}\nfunction Decoder() {{ return {{}}; }}"));
        assert_eq!((failure.kind, failure.line), (FailureKind::Syntax, Some(1)), "{failure}");
        assert!(failure.message.contains(named), "{failure}");
    }
}

#[test]
fn what_decodes_downlinks_or_normalizes_is_named_when_it_fails() {
    let text = "function encodeDownlink() {} function decodeUplink() {}
        function decodeDownlink() { throw new Error('no'); } function normalizeUplink() { return 5n; }";
    let mut harness = Harness::new();
    let functions = harness.load(&Sources::single_file(text));
    let single = |function| Call { single_function: Some(function), ..call(EntryPoint::SingleFunction, b"{}") };
    for (call, start) in [
        (call(EntryPoint::DecodeDownlink, &[1]), "`decodeDownlink` failed (line 2, column"),
        (single(Function::DecodeDownlink), "`decodeDownlink` failed (line 2, column"),
        (single(Function::NormalizeUplink), "`normalizeUplink` returned a BigInt"),
    ] {
        let failure = harness.sandbox.call(&functions, &call).result.unwrap_err();
        assert!(failure.to_string().starts_with(start), "{failure}");
    }
    let functions = harness.load_in(Slot::Encoder, "function Encoder() { return [1]; }");
    let missing = harness.sandbox.call(&functions, &call(EntryPoint::DecodeDownlink, &[1])).result.unwrap_err();
    assert!(missing.to_string().starts_with("the encoder cannot be loaded: defines no function named"), "{missing}");
}

#[test]
fn logs_keep_level_order_and_json() {
    let logged = logs(
        "console.log('hi', 11, [1, 'é'], { b: 1, a: NaN }); console.warn(); console.error(new Error('e')); console.debug(undefined, null, function () {}); return {};",
    );
    let expected: [(LogLevel, &[&str]); 4] = [
        (LogLevel::Info, &[r#""hi""#, "11", r#"[1,"é"]"#, r#"{"b":1,"a":null}"#]),
        (LogLevel::Warn, &[]),
        (LogLevel::Error, &[r#"{"message":"e","name":"Error"}"#]),
        (LogLevel::Debug, &["undefined", "null", "undefined"]),
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
fn logs_are_truncated_with_a_marker() {
    let many = logs("for (var i = 0; i < 100; i++) console.log(i); return {};");
    assert_eq!(many.len(), 65);
    assert_eq!(many[64], (LogLevel::Warn, vec![r#""further log entries were dropped""#.to_owned()]));
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
    let mut harness = Harness::new();
    let functions = harness.load_in(Slot::Decoder, "function Decoder() { console.log('before'); throw 1; }");
    let outcome = harness.decode(&functions, b"x");
    assert!(outcome.result.is_err());
    assert_eq!((outcome.logs.len(), outcome.logs[0].slot), (1, Slot::Decoder));
}
