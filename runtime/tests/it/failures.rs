//! The failure and logs of a failing function.

use airlock_runtime::{FailureKind, LogLevel, Slot};

use crate::harness::Harness;

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
        ("Symbol('x')", "a value that cannot be shown"),
        ("{ toJSON: function () { throw 1; }, toString: function () { throw 2; } }", "a value that cannot be shown"),
        ("Object.assign(new Error('x'), { message: 'own' })", "Error: own"),
    ] {
        let failure = harness.fail(Slot::Decoder, &format!("function Decoder() {{ throw {thrown}; }}"));
        assert_eq!((failure.kind, failure.message.as_str()), (FailureKind::Thrown, message), "{thrown}");
    }
    let long = harness.fail(Slot::Decoder, "function Decoder() { throw new Error('é'.repeat(5000)); }");
    assert!(long.message.len() <= 1024 && long.message.ends_with('…'), "{}", long.message.len());
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
