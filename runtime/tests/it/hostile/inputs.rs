//! Inputs of functions.

use airlock_runtime::{Call, EntryPoint, FailureKind, Slot};

use super::HostileHarness;
use crate::harness::{call, fields};

/// SBX-075
#[test]
fn payloads_arrive_as_plain_arrays_of_numbers() {
    let mut hostile = HostileHarness::new();
    let text = "function Decoder(bytes, port) {
        var plain = Array.isArray(bytes) && Object.getPrototypeOf(bytes) === Array.prototype;
        var numbers = bytes.every(function (b) { return typeof b === 'number' && b >= 0 && b < 256 && b === (b | 0); });
        var own = Object.getOwnPropertyNames(bytes).length === bytes.length + 1;
        bytes.length = 0; bytes.push(7);
        return { plain: plain, numbers: numbers, own: own, port: port, first: payload[0] };
    }";
    let functions = hostile.harness.load_in(Slot::Decoder, text);
    let payload: Vec<u8> = (1..=255).collect();
    let outcome = hostile.harness.decode(&functions, &payload);
    assert_eq!(fields(&outcome), r#"{"plain":true,"numbers":true,"own":true,"port":7,"first":1}"#);
}

/// SBX-077
#[test]
fn payloads_of_every_length_and_every_port_arrive() {
    let mut hostile = HostileHarness::new();
    let functions = hostile
        .harness
        .load_in(Slot::Decoder, "function Decoder(bytes, port) { return { l: bytes.length, p: port }; }");
    for (length, port) in [(0, 0), (1, 1), (51, 85), (242, 223), (255, 255)] {
        let message = Call { port, ..call(EntryPoint::Uplink, &vec![9; length]) };
        let outcome = hostile.harness.sandbox.call(&functions, &message);
        assert_eq!(fields(&outcome), format!(r#"{{"l":{length},"p":{port}}}"#));
    }
    let outcome = hostile.harness.decode(&functions, &[9; 256]);
    let failure = outcome.result.unwrap_err();
    assert!(super::is(&failure, Slot::Decoder, FailureKind::Output) && failure.message.contains("256"), "{failure}");
    assert_eq!(outcome.fuel, 0, "the sandbox was not asked");
}

/// SBX-034: malformed fields.
#[test]
fn invalid_fields_never_reach_the_encoder() {
    let mut hostile = HostileHarness::new();
    let functions = hostile.harness.load_in(Slot::Encoder, "function Encoder(fields) { return [fields.n]; }");
    for text in [
        "",
        " ",
        "{",
        "}",
        "[]",
        "[1]",
        "null",
        "1",
        "\"n\"",
        "{\"n\":1}{}",
        "{\"n\":1}\0",
        "{\"n\":\u{0}1}",
        "{n:1}",
        "{'n':1}",
        "{\"n\":01}",
        "{\"n\":NaN}",
        "{\"n\":1,}",
        "\u{feff}{\"n\":1}",
        "{\"n\":1}//",
        "{\"n\":\"\n\"}",
    ] {
        let outcome = hostile.harness.sandbox.call(&functions, &call(EntryPoint::EncodeDownlink, text.as_bytes()));
        let failure = outcome.result.expect_err(text);
        assert!(super::is(&failure, Slot::Encoder, FailureKind::Output), "{failure} for {text:?}");
        hostile.check_next(text, Slot::Encoder, &functions);
    }
    let outcome = hostile.harness.sandbox.call(&functions, &call(EntryPoint::EncodeDownlink, b"{\"n\":\"\xff\"}"));
    assert_eq!(outcome.result.unwrap_err().kind, FailureKind::Output);
}

/// SBX-053: fields named like inherited properties.
#[test]
fn fields_cannot_change_what_objects_inherit() {
    let mut hostile = HostileHarness::new();
    let text = "function Encoder(fields) {
        return [typeof {}.spoilt === 'undefined' ? 1 : 0, Object.getPrototypeOf(fields) === Object.prototype ? 1 : 0];
    }";
    let functions = hostile.harness.load_in(Slot::Encoder, text);
    for fields in [r#"{"__proto__":{"spoilt":1}}"#, r#"{"constructor":{"prototype":{"spoilt":1}}}"#] {
        let outcome = hostile.harness.sandbox.call(&functions, &call(EntryPoint::EncodeDownlink, fields.as_bytes()));
        match outcome.result {
            Ok(airlock_runtime::Value::Bytes { bytes, .. }) => assert_eq!(bytes, [1, 1], "{fields}"),
            other => panic!("{fields}: {other:?}"),
        }
    }
}
