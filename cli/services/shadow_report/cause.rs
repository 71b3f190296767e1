//! The likely cause of a difference, by how the two engines are known to differ.

use serde_json::Value;
use types::Timestamp;

/// The likely cause of a difference between two values, each as JSON, or absent.
pub(super) fn of_difference(there: Option<&str>, here: Option<&str>) -> &'static str {
    let (there, here) = match (there, here) {
        (Some("null"), None) => return "undefined: null there, left out here",
        (Some("null"), Some(_)) => return "a value that the network cannot represent",
        (None, _) => return "a member that is missing there",
        (Some(_), None) => return "a member that is missing here",
        (Some(there), Some(here)) => (there, here),
    };
    match (&read(there), &read(here)) {
        (Value::Object(there), Value::String(here)) if there.is_empty() && is_time(here) => {
            "a Date: {} there, a text here"
        }
        (Value::Object(there), Value::Array(_) | Value::Object(_)) if has_indexes(there) => {
            "a Buffer or typed array: a map of indexes there"
        }
        (Value::String(there), Value::String(here)) if is_time(there) && is_time(here) => "time or time zone",
        (Value::Number(there), Value::Number(here)) if are_times(there, here) => "time",
        (Value::Number(_), Value::Number(_)) => "a number",
        // The codec caught what it threw, and returns it.
        (Value::String(there), _) if there.contains("Error: ") => of_failure_there(there),
        _ => "unknown",
    }
}

/// A value as JSON. Of one that was truncated only the beginning of a text is known.
fn read(text: &str) -> Value {
    let truncated = || text.strip_prefix('"').map_or(Value::Null, |text| Value::String(text.to_owned()));
    serde_json::from_str(text).unwrap_or_else(|_| truncated())
}

/// The likely cause of a failure in ChirpStack that did not happen here.
pub(super) fn of_failure_there(description: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| description.contains(word));
    match () {
        () if has(&["interrupted"]) => "time-out there",
        () if has(&["strict mode", "invalid keyword", "Duplicate parameter", "invalid property access"]) => {
            "strict mode there"
        }
        () if has(&["redefinition", "duplicate import", "module is not defined", "unexpected token"]) => {
            "runs as a module there"
        }
        () if has(&["console is not defined", "require is not defined", "TextDecoder", "TextEncoder"]) => {
            "a global that is missing there"
        }
        // `this` of a plain call is undefined in strict code.
        () if has(&["is not defined", "of undefined"]) => "strict mode there",
        () if has(&["call stack"]) => "a smaller stack there",
        () if has(&["memory"]) => "memory there",
        () => "fails there only",
    }
}

fn is_time(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok()
}

/// Returns true if both numbers are seconds or milliseconds since 1970, of this century.
fn are_times(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    let is_time = |number: &serde_json::Number| {
        number.as_f64().is_some_and(|number| (9e8..5e9).contains(&number) || (9e11..5e12).contains(&number))
    };
    is_time(one) && is_time(other)
}

fn has_indexes(object: &serde_json::Map<String, Value>) -> bool {
    !object.is_empty() && object.keys().all(|key| key.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_the_engines_are_recognized() {
        for (there, here, cause) in [
            (Some("null"), None, "undefined"),
            (Some("{}"), Some(r#""2026-11-22T16:46:32.299Z""#), "a Date"),
            (Some(r#"{"0":1.0}"#), Some("[1]"), "a Buffer"),
            (Some(r#""2026-11-22T16:46:32Z""#), Some(r#""2026-11-22T17:46:32+01:00""#), "time or"),
            (Some("1795366259"), Some("1795366260"), "time"),
            (Some("1"), Some("2"), "a number"),
            (None, Some("2"), "a member that is missing there"),
            (Some("2"), None, "a member that is missing here"),
            (Some(r#""TypeError: cannot read property 'f' of undefined""#), Some("[]"), "strict mode"),
            (Some(r#""TypeError: cannot read property 'f' of undefined""#), Some(r#"[{"a":1},{"b…"#), "strict mode"),
            (Some(r#""TypeError: 'f' of undefined at …"#), Some("1"), "strict mode"),
            (Some("\"a\""), Some("\"b\""), "unknown"),
        ] {
            let found = of_difference(there, here);
            assert!(found.starts_with(cause), "{there:?} {here:?}: {found}");
        }
    }

    #[test]
    fn recorded_failures_of_chirpstack_are_recognized() {
        for (description, cause) in [
            ("JS error: Error: interrupted\n    at decodeUplink (main:5:52)", "time-out there"),
            ("JS error: Error: undeclared is not defined\n    at decodeUplink (main:5:1)", "strict mode there"),
            ("JS error: Error: Octal literals are not allowed in strict mode", "strict mode there"),
            ("JS error: Error: console is not defined", "a global that is missing there"),
            ("JS error: Error: module is not defined", "runs as a module there"),
            ("JS error: Error: Maximum call stack size exceeded", "a smaller stack there"),
            ("decodeUplink did not return 'data'", "fails there only"),
        ] {
            assert_eq!(of_failure_there(description), cause, "{description}");
        }
    }
}
