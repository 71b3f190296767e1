//! Console output.

use airlock_runtime::{EntryPoint, Slot, Sources};

use super::HostileHarness;
use crate::harness::{call, fields};

/// SBX-036, SBX-037
#[test]
fn long_logs_are_truncated_and_the_call_continues() {
    let mut hostile = HostileHarness::new();
    for (body, entries) in [
        ("console.log('x'.repeat(3e6)); return { n: 1 };", 1),
        ("for (var i = 0; i < 1e5; i++) console.log(i); return { n: 1 };", 65),
        ("for (var i = 0; i < 300; i++) console.log('x'.repeat(1e4)); return { n: 1 };", 16),
        ("for (var i = 0; i < 20; i++) console.log.apply(console, new Array(1e4).fill('')); return { n: 1 };", 2),
        ("console.log.apply(console, new Array(1e4).fill('x'.repeat(2000))); return { n: 1 };", 1),
        ("for (var i = 0; i < 1e5; i++) console.error(); return { n: 1 };", 65),
    ] {
        let outcome = hostile.decode(body);
        assert_eq!(fields(&outcome), r#"{"n":1}"#, "{body}");
        assert!((1..=entries).contains(&outcome.logs.len()), "{} entries of {body}", outcome.logs.len());
        let bytes: usize = outcome.logs.iter().flat_map(|entry| &entry.fields).map(String::len).sum();
        assert!(bytes <= 17 * 1024, "{bytes} bytes of {body}");
        assert!(outcome.logs.iter().flat_map(|entry| &entry.fields).all(|field| field.len() <= 1024), "{body}");
        hostile.check_innocent(body);
    }
    let outcome = hostile.decode("for (var i = 0; i < 65; i++) console.log(i); return { n: 1 };");
    assert_eq!(outcome.logs.len(), 65);
    assert_eq!(outcome.logs[64].fields, [r#""further log entries were dropped""#]);
    let outcome = hostile.decode("for (var i = 0; i < 64; i++) console.log(i); return { n: 1 };");
    assert_eq!((outcome.logs.len(), &outcome.logs[63].fields[..]), (64, &["63".to_owned()][..]));
}

/// SBX-038
#[test]
fn entries_are_json_and_name_the_function_that_wrote_them() {
    let mut hostile = HostileHarness::new();
    let log = "console.log('é\"', 1, { a: [true] });";
    let sources = Sources {
        decoder: format!("function Decoder() {{ {log} return {{}}; }}"),
        converter: format!("function Converter(fields) {{ {log} return fields; }}"),
        validator: format!("function Validator() {{ {log} return true; }}"),
        encoder: format!("function Encoder() {{ {log} return []; }}"),
        ..Sources::default()
    };
    let functions = hostile.harness.load(&sources);
    let up = hostile.harness.sandbox.call(&functions, &call(EntryPoint::Uplink, b"")).logs;
    let down = hostile.harness.sandbox.call(&functions, &call(EntryPoint::EncodeDownlink, b"{}")).logs;
    assert_eq!(up.iter().chain(&down).map(|entry| entry.slot).collect::<Vec<_>>(), Slot::ALL);
    for entry in up.iter().chain(&down) {
        assert_eq!(entry.fields, [r#""é\"""#, "1", r#"{"a":[true]}"#]);
    }
}

/// SBX-039
#[test]
fn any_logged_value_becomes_an_entry_and_the_call_continues() {
    let mut hostile = HostileHarness::new();
    for (value, shown) in [
        ("new Proxy({}, { ownKeys: function () { throw 1; } })", r#""[threw while it was shown]""#),
        ("{ get a() { throw 1; } }", r#""[threw while it was shown]""#),
        ("{ toJSON: function () { throw 1; } }", r#""[threw while it was shown]""#),
        (
            "(function () { var p = Proxy.revocable({}, {}); p.revoke(); return p.proxy; })()",
            r#""[threw while it was shown]""#,
        ),
        ("12n", r#""12n""#),
        ("{ a: 12n }", r#""[contains a bigint]""#),
        ("Symbol('s')", r#""[symbol]""#),
        ("(function () { var a = {}; a.a = a; return a; })()", r#""[circular]""#),
        ("-0", "0"),
        ("NaN", "null"),
        ("undefined", "undefined"),
        ("function () {}", "undefined"),
        ("'\\ud800'", r#""\ud800""#),
        ("null", "null"),
    ] {
        let outcome = hostile.decode(&format!("console.log({value}); return {{ n: 1 }};"));
        assert_eq!(fields(&outcome), r#"{"n":1}"#, "{value}");
        assert_eq!(outcome.logs.len(), 1, "{value}");
        assert_eq!(outcome.logs[0].fields, [shown], "{value}");
        hostile.check_innocent(value);
    }
}

/// SBX-039: logging from within a value that is being logged.
#[test]
fn nested_logging_is_limited_too() {
    let mut hostile = HostileHarness::new();
    for body in [
        "var o = { toJSON: function () { console.log(1); return 2; } }; console.log(o, o); return { n: 1 };",
        "var o = { get a() { console.log('in'); return 2; } }; console.log(o); return { n: 1 };",
    ] {
        let outcome = hostile.decode(body);
        assert_eq!(fields(&outcome), r#"{"n":1}"#);
        assert!((2..=3).contains(&outcome.logs.len()), "{:?}", outcome.logs);
    }
    let outcome = hostile
        .decode("var o = { toJSON: function () { console.log(o); return 2; } }; console.log(o); return { n: 1 };");
    assert!(outcome.logs.len() <= 65);
    hostile.check_innocent("a log that logs itself");
}

/// SBX-036: logs before a failure are kept.
#[test]
fn logs_before_a_failure_are_kept() {
    let mut hostile = HostileHarness::new();
    for body in
        ["console.log('here'); throw 1;", "console.log('here'); while (true);", "console.log('here'); return 1;"]
    {
        let outcome = hostile.decode(body);
        assert!(outcome.result.is_err(), "{body}");
        assert_eq!(outcome.logs.first().map(|entry| &entry.fields[..]), Some(&[r#""here""#.to_owned()][..]), "{body}");
    }
}
