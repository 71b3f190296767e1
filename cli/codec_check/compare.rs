//! Compares JSON values, ignoring member order and rounding errors.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use super::surrogates::to_json;

/// Maximum relative difference between numbers that count as equal.
const RELATIVE_DIFFERENCE_MAX: f64 = 1e-9;
/// Maximum number of differences that one comparison reports.
const DIFFERENCES_MAX: usize = 8;
/// Maximum length of a value in a report, in characters.
const TEXT_CHARS_MAX: usize = 160;

/// A place where two values differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The path, as in `data.history[2].time`; empty for the value itself.
    pub path: String,
    /// The expected JSON, possibly truncated; absent when the member should not exist.
    pub expected: Option<String>,
    /// The actual JSON, likewise.
    pub got: Option<String>,
}

/// The first eight differences between two values.
///
/// With `ignores_empty`, null members and empty `warnings` and `errors` count as absent.
pub fn differences(expected: &Value, got: &Value, ignores_empty: bool) -> Vec<Difference> {
    let mut comparison = Comparison { ignores_empty, path: String::new(), found: Vec::new() };
    comparison.values(Some(expected), Some(got));
    comparison.found
}

/// `value` as JSON, truncated to a line or two.
pub(super) fn to_short_json(value: &Value) -> String {
    truncate(&to_json(value))
}

/// `text`, truncated to a line or two.
pub(crate) fn truncate(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

struct Comparison {
    ignores_empty: bool,
    path: String,
    found: Vec<Difference>,
}

impl Comparison {
    fn values(&mut self, expected: Option<&Value>, got: Option<&Value>) {
        match (expected, got) {
            (None, None) => {}
            _ if self.found.len() >= DIFFERENCES_MAX => {}
            (Some(Value::Object(expected)), Some(Value::Object(got))) => self.objects(expected, got),
            (Some(Value::Array(expected)), Some(Value::Array(got))) => self.arrays(expected, got),
            (Some(Value::Number(expected)), Some(Value::Number(got))) if are_close(expected, got) => {}
            (expected, got) if expected == got => {}
            (expected, got) => {
                let (expected, got) = (expected.map(to_short_json), got.map(to_short_json));
                self.found.push(Difference { path: truncate(&to_json(&self.path)), expected, got });
            }
        }
    }

    fn objects(&mut self, expected: &Map<String, Value>, got: &Map<String, Value>) {
        let names: BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
        for name in names {
            let (expected, got) = (self.member(expected, name), self.member(got, name));
            let dot = if self.path.is_empty() { "" } else { "." };
            self.child(&format!("{dot}{name}"), expected, got);
        }
    }

    fn arrays(&mut self, expected: &[Value], got: &[Value]) {
        for index in 0..expected.len().max(got.len()) {
            self.child(&format!("[{index}]"), expected.get(index), got.get(index));
        }
    }

    fn child(&mut self, step: &str, expected: Option<&Value>, got: Option<&Value>) {
        let length = self.path.len();
        self.path.push_str(step);
        self.values(expected, got);
        self.path.truncate(length);
    }

    fn member<'a>(&self, object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
        object.get(name).filter(|value| self.counts(name, value))
    }

    fn counts(&self, name: &str, value: &Value) -> bool {
        let is_empty_list = value.as_array().is_some_and(Vec::is_empty);
        !self.ignores_empty || !(value.is_null() || is_empty_list && matches!(name, "warnings" | "errors"))
    }
}

fn are_close(one: &serde_json::Number, other: &serde_json::Number) -> bool {
    let (Some(one), Some(other)) = (one.as_f64(), other.as_f64()) else { return false };
    (one - other).abs() <= RELATIVE_DIFFERENCE_MAX * one.abs().max(other.abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(expected: &Value, got: &Value) -> Vec<String> {
        differences(expected, got, false).into_iter().map(|difference| difference.path).collect()
    }

    #[test]
    fn ignores_member_order_and_rounding_errors() {
        let expected = json!({"a": 1, "b": [0.1, {"c": 1e300}], "d": 0});
        let got = json!({"d": -0.0, "b": [0.1 + 1e-12, {"c": 1e300 * (1.0 + 1e-12)}], "a": 1.0});
        assert_eq!(differences(&expected, &got, false), []);
    }

    #[test]
    fn reports_every_other_difference() {
        for (expected, got, path) in [
            (json!(1), json!(1.000_001), ""),
            (json!(0), json!(1e-12), ""),
            (json!(1), json!("1"), ""),
            (json!(null), json!({}), ""),
            (json!({"a": null}), json!({}), "a"),
            (json!({}), json!({"a": {"b": 1}}), "a"),
            (json!({"a": {"b": [1, 2]}}), json!({"a": {"b": [1, 3]}}), "a.b[1]"),
            (json!([[1], [2]]), json!([[1]]), "[1]"),
            (json!([0, 1]), json!([1, 0]), "[0]"),
        ] {
            assert_eq!(paths(&expected, &got).first().map(String::as_str), Some(path), "{expected} {got}");
        }
    }

    #[test]
    fn a_difference_names_the_expected_and_the_actual_value() {
        let [difference] = &differences(&json!({"a": 1}), &json!({}), false)[..] else { panic!() };
        assert_eq!((difference.expected.as_deref(), difference.got.as_deref()), (Some("1"), None));
    }

    #[test]
    fn ignores_nulls_and_empty_warnings_only_when_asked() {
        let (expected, got) = (json!({"data": {"a": null, "b": []}}), json!({"data": {"b": []}, "errors": []}));
        assert_eq!(paths(&expected, &got), ["data.a", "errors"]);
        assert_eq!(differences(&expected, &got, true), []);
        let got = json!({"data": {"b": [], "c": []}, "warnings": ["x"]});
        assert_eq!(differences(&expected, &got, true).len(), 2);
    }

    #[test]
    fn limits_the_differences_and_truncates_their_values() {
        let got: Vec<_> = (0..100).map(|index| "é".repeat(index * 100)).collect();
        let found = differences(&json!(vec![1; 100]), &json!(got), false);
        assert_eq!(found.len(), DIFFERENCES_MAX);
        assert!(found.iter().all(|difference| difference.got.as_ref().unwrap().chars().count() <= TEXT_CHARS_MAX + 1));
    }
}
