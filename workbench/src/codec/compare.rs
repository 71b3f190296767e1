//! Compares JSON values: ignoring member order and rounding errors, or exactly.

pub(crate) mod settled;

use std::collections::BTreeSet;

use runtime::sanitize;
use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::Tolerance;
use crate::text::surrogates::{mark, to_json};

/// Maximum relative difference between numbers that count as equal.
const RELATIVE_DIFFERENCE_MAX: f64 = 1e-9;
/// Maximum number of differences that one comparison reports, by default and if all are wanted.
const DIFFERENCES: usize = 8;
const DIFFERENCES_MAX: usize = 100_000;
/// Text that packages write in place of a number that may be any.
const ANY_NUMBER: &str = "SKIP_NUMBER";
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

impl Difference {
    /// The difference in one line, without control characters.
    pub(crate) fn line(&self) -> String {
        let value = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), sanitize);
        let path = if self.path.is_empty() { "the result" } else { &self.path };
        format!("{}: expected {}, got {}", sanitize(path), value(&self.expected), value(&self.got))
    }
}

/// Strictness of comparisons, and length of their reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// True if the order of members and the last digit of numbers count, as for `JSON.stringify`.
    pub exact: bool,
    /// True if all differences are reported in full length, instead of the first eight, shortened.
    pub all: bool,
}

/// The first eight differences between two values.
///
/// With `ignores_empty`, null members and empty `warnings` and `errors` count as absent.
pub fn differences(expected: &Value, got: &Value, ignores_empty: bool) -> Vec<Difference> {
    let tolerance = if ignores_empty { Tolerance::Empty } else { Tolerance::None };
    compare(expected, got, tolerance, Rules::default())
}

/// All differences between two texts of JSON, in which null members count as absent; a text that is not JSON, or nested
/// too deeply, differs as a whole from any other.
pub fn json_differences(expected: &str, got: &str) -> Vec<Difference> {
    let parse = |text: &str| serde_json::from_str::<Value>(&mark(text));
    match (parse(expected), parse(got)) {
        (Ok(expected), Ok(got)) => compare(&expected, &got, Tolerance::Empty, Rules { exact: false, all: true }),
        _ => vec![Difference { path: String::new(), expected: Some(truncate(expected)), got: Some(truncate(got)) }],
    }
}

/// The differences between two values by `rules`.
pub(crate) fn compare(expected: &Value, got: &Value, tolerance: Tolerance, rules: Rules) -> Vec<Difference> {
    let mut comparison = Comparison { rules, tolerance, path: String::new(), found: Vec::new() };
    comparison.values(Some(expected), Some(got));
    comparison.found
}

/// The fields of a result that are not `listed`.
pub(crate) fn unlisted(listed: &BTreeSet<String>, got: &Value, rules: Rules) -> Vec<Difference> {
    let fields = got.get("data").unwrap_or(got).as_object().into_iter().flatten();
    let mut comparison = Comparison { rules, tolerance: Tolerance::None, path: String::new(), found: Vec::new() };
    for (name, value) in fields.filter(|(name, _)| !listed.contains(*name)) {
        comparison.path = format!("data.{name}");
        comparison.values(None, Some(value));
    }
    comparison.found
}

/// `value` as JSON, truncated to a line or two.
pub(crate) fn to_short_json(value: &Value) -> String {
    truncate(&to_json(value))
}

/// `text`, truncated to a line or two.
pub fn truncate(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

struct Comparison {
    rules: Rules,
    tolerance: Tolerance,
    path: String,
    found: Vec<Difference>,
}

impl Comparison {
    fn values(&mut self, expected: Option<&Value>, got: Option<&Value>) {
        match (expected, got) {
            (None, None) => {}
            _ if self.found.len() >= self.rules.differences_max() => {}
            (Some(Value::Object(expected)), Some(Value::Object(got))) => self.objects(expected, got),
            (Some(Value::Array(expected)), Some(Value::Array(got))) => self.arrays(expected, got),
            (Some(Value::Number(expected)), Some(Value::Number(got))) if self.are_equal(expected, got) => {}
            (expected, got) if expected == got => {}
            (Some(Value::String(mask)), Some(Value::String(time))) if self.is_masked(mask, time) => {}
            (Some(Value::String(mask)), Some(Value::Number(_))) if self.is_package() && mask == ANY_NUMBER => {}
            (Some(Value::Null), None) if self.is_package() || self.tolerance == Tolerance::Repository => {}
            (expected, got) => self.push(expected, got),
        }
    }

    fn push(&mut self, expected: Option<&Value>, got: Option<&Value>) {
        let text = |value: &Value| if self.rules.all { to_json(value) } else { to_short_json(value) };
        let (expected, got) = (expected.map(text), got.map(text));
        self.found.push(Difference { path: truncate(&to_json(&self.path)), expected, got });
    }

    fn are_equal(&self, expected: &Number, got: &Number) -> bool {
        match (expected.as_f64(), got.as_f64()) {
            (Some(one), Some(other)) if self.rules.exact => one == other,
            (Some(one), Some(other)) => (one - other).abs() <= RELATIVE_DIFFERENCE_MAX * one.abs().max(other.abs()),
            _ => false,
        }
    }

    /// Returns true if `time` fits `mask`, in which packages write each digit as X.
    fn is_masked(&self, mask: &str, time: &str) -> bool {
        let fits = |(mask, shown): (char, char)| mask == shown || mask == 'X' && shown.is_ascii_digit();
        let is_mask = self.is_package() && mask.starts_with("XXXX-XX-XX");
        is_mask && mask.chars().count() == time.chars().count() && mask.chars().zip(time.chars()).all(fits)
    }

    fn is_package(&self) -> bool {
        self.tolerance == Tolerance::Package
    }

    fn objects(&mut self, expected: &Map<String, Value>, got: &Map<String, Value>) {
        if self.rules.exact {
            self.order(expected, got);
        }
        let names: BTreeSet<&String> = expected.keys().chain(got.keys()).collect();
        for name in names {
            let (expected, got) = (self.member(expected, name), self.member(got, name));
            let dot = if self.path.is_empty() { "" } else { "." };
            self.child(&format!("{dot}{name}"), expected, got);
        }
    }

    /// Reports members of both objects that come in another order.
    fn order(&mut self, expected: &Map<String, Value>, got: &Map<String, Value>) {
        let common = |one: &Map<String, Value>, other: &Map<String, Value>| -> Vec<String> {
            one.keys().filter(|name| other.contains_key(*name)).cloned().collect()
        };
        let (expected, got) = (common(expected, got), common(got, expected));
        if expected != got && self.found.len() < self.rules.differences_max() {
            let text = |names: &[String]| Some(truncate(&format!("the order {}", names.join(", "))));
            let (expected, got) = (text(&expected), text(&got));
            self.found.push(Difference { path: truncate(&to_json(&self.path)), expected, got });
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
        let is_no_remark = is_empty_list && matches!(name, "warnings" | "errors");
        match self.tolerance {
            Tolerance::None | Tolerance::Repository => true,
            Tolerance::Empty => !value.is_null() && !is_no_remark,
            Tolerance::Package => !is_no_remark,
        }
    }
}

impl Rules {
    const fn differences_max(self) -> usize {
        if self.all { DIFFERENCES_MAX } else { DIFFERENCES }
    }
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
        assert_eq!(found.len(), DIFFERENCES);
        assert!(found.iter().all(|difference| difference.got.as_ref().unwrap().chars().count() <= TEXT_CHARS_MAX + 1));
    }

    #[test]
    fn counts_order_and_digits_when_asked() {
        let rules = Rules { exact: true, all: false };
        let found = |expected: Value, got: Value| compare(&expected, &got, Tolerance::None, rules);
        assert_eq!(found(json!({"a": 1, "b": [0.1]}), json!({"a": 1.0, "b": [0.1]})), []);
        assert_eq!(found(json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}))[0].got.as_deref(), Some("the order b, a"));
        assert_eq!(found(json!({"a": 0.1}), json!({"a": 0.1 + 1e-12})).len(), 1);
        assert_eq!(found(json!({"a": 1, "c": 0, "b": 2}), json!({"a": 1, "b": 2}))[0].path, "c");
    }

    #[test]
    fn reports_all_differences_in_full_when_asked() {
        let got: Vec<_> = (0..100).map(|_| "x".repeat(1000)).collect();
        let found = compare(&json!(vec![1; 100]), &json!(got), Tolerance::None, Rules { exact: false, all: true });
        assert_eq!((found.len(), found[99].got.as_ref().map(String::len)), (100, Some(1002)));
    }

    #[test]
    fn packages_leave_times_and_empty_remarks_open() {
        let expected = json!({"data": {"at": "XXXX-XX-XXTXX:XX:XXZ", "n": "SKIP_NUMBER", "b": null}, "errors": []});
        let got = json!({"data": {"at": "2026-01-01T00:00:00Z", "n": 7}, "warnings": []});
        let found = |tolerance| compare(&expected, &got, tolerance, Rules::default());
        assert_eq!((found(Tolerance::Package).len(), found(Tolerance::None).len()), (0, 5));
        assert_eq!(found(Tolerance::Repository).len(), 4, "a null may be missing");
        let got = json!({"data": {"at": "2026-01-01 00:00:00Z", "n": "7", "b": null, "c": null}});
        assert_eq!(compare(&expected, &got, Tolerance::Package, Rules::default()).len(), 3);
    }

    #[test]
    fn finds_fields_that_are_not_listed() {
        let listed = ["a".to_owned()].into();
        let found = unlisted(&listed, &json!({"data": {"a": 1, "b": {"c": 2}}}), Rules::default());
        assert_eq!((found.len(), found[0].path.as_str(), found[0].expected.as_ref()), (1, "data.b", None));
    }
}
