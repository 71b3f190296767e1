//! The limits on results, each obeyed and violated.

use std::sync::Arc;

use airlock_runtime::{CallOutcome, Engine, EntryPoint, Failure, FailureKind, Limits, Settings, Slot, Value};

use crate::harness::{Harness, call, fields, settings, sources};

/// The outcome of the function in `slot` with changed limits.
fn run(change: fn(&mut Limits), slot: Slot, text: &str, payload: &[u8]) -> CallOutcome {
    let mut harness = Harness::with_limits(change);
    let functions = harness.load_in(slot, text);
    let entry = if slot == Slot::Encoder { EntryPoint::EncodeDownlink } else { EntryPoint::Uplink };
    harness.sandbox.call(&functions, &call(entry, payload))
}

fn decode(change: fn(&mut Limits), expression: &str) -> CallOutcome {
    run(change, Slot::Decoder, &format!("function Decoder(bytes) {{ return {expression}; }}"), b"x")
}

/// Asserts that `obeyed` is accepted and `violated` is refused with `words`.
fn check_pair(change: fn(&mut Limits), obeyed: &str, violated: &str, words: &str) {
    let outcome = decode(change, obeyed);
    assert!(outcome.result.is_ok(), "{obeyed}: {:?}", outcome.result);
    check_refused(&decode(change, violated), words);
}

fn check_refused(outcome: &CallOutcome, words: &str) {
    match &outcome.result {
        Err(Failure { kind: FailureKind::Output, message, .. }) => assert!(message.contains(words), "{message}"),
        other => panic!("expected a refusal with {words:?}, got {other:?}"),
    }
}

#[test]
fn enforces_the_length_of_fields() {
    check_pair(|limits| limits.fields_bytes_max = 20, "{ a: 'x'.repeat(12) }", "{ a: 'x'.repeat(13) }", "20 bytes");
    check_pair(|_| {}, "{ a: 'x'.repeat(16376) }", "{ a: 'x'.repeat(16377) }", "16384 bytes");
}

#[test]
fn enforces_the_depth_of_fields() {
    check_pair(|limits| limits.fields_depth_max = 2, "{ a: [1] }", "{ a: [[1]] }", "2 levels");
    check_pair(
        |limits| limits.fields_depth_max = 40,
        "{ a: [1] }",
        &format!("{{ a: {}{} }}", "[".repeat(40), "]".repeat(40)),
        "40 levels",
    );
}

#[test]
fn enforces_the_number_of_keys() {
    check_pair(|limits| limits.fields_keys_max = 3, "{ a: { b: 1 }, c: 1 }", "{ a: { b: 1 }, c: 1, d: 1 }", "3 keys");
}

#[test]
fn enforces_the_length_of_an_encoded_payload() {
    let encode = |count: usize| {
        let text = format!("function Encoder() {{ return new Array({count}).fill(7); }}");
        run(|limits| limits.payload_bytes_max = 5, Slot::Encoder, &text, b"{}")
    };
    assert!(matches!(encode(5).result, Ok(Value::Bytes { bytes, .. }) if bytes == [7; 5]));
    check_refused(&encode(6), "at most 5");
}

#[test]
fn enforces_the_length_of_the_input_payload() {
    let text = "function Decoder(bytes) { return { n: bytes.length, last: bytes[bytes.length - 1] }; }";
    let decode = |bytes_max, payload: &[u8]| {
        let mut harness = Harness::with_limits(|limits| limits.input_bytes_max = bytes_max);
        let functions = harness.load_in(Slot::Decoder, text);
        harness.sandbox.call(&functions, &call(EntryPoint::Uplink, payload))
    };
    assert_eq!(fields(&decode(255, &[9; 255])), r#"{"n":255,"last":9}"#);
    check_refused(&decode(255, &[9; 256]), "at most 255");
    assert_eq!(fields(&decode(1000, &[9; 1000])), r#"{"n":1000,"last":9}"#);
}

#[test]
fn enforces_the_size_of_input_fields() {
    let change = |limits: &mut Limits| {
        limits.fields_bytes_max = 30;
        limits.fields_depth_max = 2;
        limits.fields_keys_max = 2;
    };
    let encode = |fields: &str| run(change, Slot::Encoder, "function Encoder() { return [1]; }", fields.as_bytes());
    for fields in [r#"{"a":1,"b":[1]}"#, r#"{"a":":{{{[[[","b":1}"#] {
        assert!(encode(fields).result.is_ok(), "{fields}");
    }
    check_refused(&encode(&format!("{{\"a\":\"{}\"}}", "x".repeat(30))), "30 bytes");
    check_refused(&encode(r#"{"a":[[1]]}"#), "2 levels");
    check_refused(&encode(r#"{"a":1,"b":1,"c":1}"#), "2 keys");
}

#[test]
fn enforces_the_number_and_length_of_warnings() {
    let change = |limits: &mut Limits| {
        limits.warnings_max = 2;
        limits.message_bytes_max = 10;
    };
    let text = "function decodeUplink() { return { data: {}, warnings: ['a'.repeat(10), 'b'.repeat(11), 'c'] }; }";
    assert_eq!(run(change, Slot::Decoder, text, b"x").warnings, ["a".repeat(10), "bbbbbbb…".to_owned()]);
}

#[test]
fn enforces_the_length_of_failure_messages() {
    let thrown = |text: &str| {
        let body = format!("(() => {{ throw '{text}'; }})()");
        decode(|limits| limits.message_bytes_max = 10, &body).result.expect_err(text).message
    };
    assert_eq!(thrown("0123456789"), "0123456789");
    assert_eq!(thrown("0123456789a"), "0123456…");
    let tiny = decode(|limits| limits.message_bytes_max = 1, "(() => { throw 'ab'; })()");
    assert_eq!(tiny.result.expect_err("thrown").message, "");
}

#[test]
fn enforces_the_number_and_length_of_log_entries() {
    let change = |limits: &mut Limits| {
        limits.log_entries_max = 3;
        limits.log_field_bytes_max = 12;
        limits.log_bytes_max = 60;
    };
    let logs = |body: &str| -> Vec<String> {
        let outcome = decode(change, &format!("(() => {{ {body}; return {{}}; }})()"));
        outcome.logs.into_iter().flat_map(|entry| entry.fields).collect()
    };
    let dropped = r#""further log entries were dropped""#;
    assert_eq!(logs("console.log(1); console.log(2); console.log(3)"), ["1", "2", "3"]);
    assert_eq!(logs("for (var i = 0; i < 4; i++) console.log(i)"), ["0", "1", "2", dropped]);
    assert_eq!(logs("console.log('0123456789')"), [r#""0123456789""#]);
    assert_eq!(logs("console.log('01234567890')"), ["\"01234567…"]);
    assert_eq!(
        logs("console.log('0123456789'); console.log('0123456789'); console.log(1)"),
        [r#""0123456789""#, r#""0123456789""#, dropped]
    );
}

#[test]
fn equal_sources_keep_the_limits_they_were_loaded_with() {
    let text = sources(Slot::Decoder, "function Decoder() { return { a: 'x'.repeat(20) }; }");
    // On one engine, and often enough that both become hot.
    let mut harness = Harness::of(Engine::new(&Settings { hot_after: 3, ..settings() }).unwrap());
    let sets = [(28, true), (27, false)].map(|(fields_bytes_max, is_enough)| {
        let limits = Arc::new(Limits { fields_bytes_max, ..settings().limits });
        (harness.engine.load(&text, &limits).unwrap(), is_enough)
    });
    for round in 0..6 {
        for (functions, is_enough) in &sets {
            let outcome = harness.sandbox.call(functions, &call(EntryPoint::Uplink, b"x"));
            assert_eq!(outcome.result.is_ok(), *is_enough, "round {round}: {:?}", outcome.result);
        }
    }
}
