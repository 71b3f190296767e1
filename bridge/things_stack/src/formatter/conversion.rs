//! Converts what an encoder returns to bytes and a port, as the engine of The Things Stack does: numbers are cut off and
//! taken modulo 256, and what is no number becomes one by the rules of JavaScript.

use bridge::codec::outcome::Encoded;
use serde_json::{Map, Value};

/// The bytes and the port in the JSON of `{bytes, fPort}`, or of a list of bytes; nothing if it has errors or no bytes.
pub(crate) fn encoded(json: &str) -> Option<Encoded> {
    let (bytes, port) = match serde_json::from_str(json).ok()? {
        Value::Object(mut returned) if !has_errors(&returned) => (returned.remove("bytes")?, returned.remove("fPort")),
        Value::Array(bytes) => (Value::Array(bytes), None),
        _ => return None,
    };
    let bytes = bytes.as_array()?.iter().map(byte).collect();
    match port.filter(|port| !port.is_null()).map(|port| byte(&port)) {
        // No downlink has this port.
        Some(0) => None,
        port => Some(Encoded { bytes, port }),
    }
}

fn has_errors(returned: &Map<String, Value>) -> bool {
    match returned.get("errors") {
        None | Some(Value::Null) => false,
        Some(Value::Array(errors)) => !errors.is_empty(),
        Some(_) => true,
    }
}

/// `ToUint8` of ECMAScript. JSON has null for `NaN` and infinity, which become 0 as null does.
fn byte(value: &Value) -> u8 {
    number(value).filter(|number| number.is_finite()).map_or(0, |number| number.trunc().rem_euclid(256.0) as u8)
}

/// `ToNumber` of ECMAScript; none for `NaN`.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(0.0),
        Value::Bool(is_true) => Some(f64::from(u8::from(*is_true))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number_of_text(text.trim()),
        Value::Array(elements) => match elements.as_slice() {
            [] => Some(0.0),
            [only] => number(only),
            _ => None,
        },
        Value::Object(_) => None,
    }
}

fn number_of_text(text: &str) -> Option<f64> {
    let radix = match text.get(..2) {
        Some("0x" | "0X") => Some(16),
        Some("0o" | "0O") => Some(8),
        Some("0b" | "0B") => Some(2),
        _ => None,
    };
    match radix {
        _ if text.is_empty() => Some(0.0),
        Some(radix) => {
            let digits = text.get(2..).filter(|digits| digits.chars().all(|digit| digit.is_digit(radix)))?;
            u64::from_str_radix(digits, radix).ok().map(|number| number as f64)
        }
        // The parser knows names for what is no number here.
        None => text.parse().ok().filter(|_| !text.contains(['n', 'N', 'f', 'F'])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_encodes(json: &str, bytes: &[u8], port: Option<u8>) {
        let encoded = encoded(json).unwrap();
        assert_eq!((encoded.bytes.as_slice(), encoded.port), (bytes, port), "{json}");
    }

    #[test]
    fn bytes_and_ports_are_converted_as_in_the_things_stack() {
        for (bytes, expected) in [
            ("[-1]", &[0xff_u8][..]),
            ("[256,257,1000]", &[0, 1, 0xe8]),
            ("[1.5,1.9,-1.5]", &[1, 1, 0xff]),
            ("[5,11.000000000000002]", &[5, 11]),
            (r#"["3","0x10","x",""," 7 ","inf","nan","1e1"]"#, &[3, 16, 0, 0, 7, 0, 0, 10]),
            ("[null,true,false,{},[],[4],[1,2]]", &[0, 1, 0, 0, 0, 4, 0]),
            ("[1e300]", &[0]),
        ] {
            assert_encodes(bytes, expected, None);
            assert_encodes(&format!(r#"{{"fPort": 4, "bytes": {bytes}}}"#), expected, Some(4));
        }
        assert_encodes(r#"{"bytes": [], "fPort": "12", "errors": []}"#, &[], Some(12));
        assert_encodes(r#"{"bytes": [1], "fPort": null, "errors": null}"#, &[1], None);
    }

    #[test]
    fn what_has_errors_or_no_bytes_is_not_converted() {
        for json in [
            r#"{"bytes": [1], "errors": ["x"]}"#,
            r#"{"bytes": [1], "errors": "x"}"#,
            r#"{"bytes": [1], "fPort": 0}"#,
            r#"{"bytes": "AQ=="}"#,
            "{}",
            "null",
        ] {
            assert!(encoded(json).is_none(), "{json}");
        }
    }
}
