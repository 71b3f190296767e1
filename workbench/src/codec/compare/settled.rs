//! The expectation of an example after an update: the actual result, but for all that is as expected already.

use serde_json::{Map, Value};

use super::{Rules, compare};
use crate::codec::{Expected, Tolerance};

/// An expectation before and after an update.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    /// None if nothing was stated.
    pub(crate) old: Option<Value>,
    pub(crate) new: Value,
}

impl Settled {
    pub(crate) fn new(expected: &Expected, got: Value, tolerance: Tolerance, rules: Rules) -> Self {
        match expected {
            Expected::Value(old) => {
                let new = Settling { tolerance, rules }.value(old, &got);
                Self { old: Some(old.clone()), new }
            }
            _ => Self { old: None, new: got },
        }
    }
}

struct Settling {
    tolerance: Tolerance,
    rules: Rules,
}

impl Settling {
    /// `got`, with what is expected wherever that counts as the same: the digits of a number, or a mask.
    fn value(&self, expected: &Value, got: &Value) -> Value {
        if self.are_same(expected, got) {
            return expected.clone();
        }
        match (expected, got) {
            (Value::Object(expected), Value::Object(got)) => Value::Object(self.object(expected, got)),
            (Value::Array(expected), Value::Array(got)) => {
                let both = got.iter().zip(expected).map(|(got, expected)| self.value(expected, got));
                Value::Array(both.chain(got.iter().skip(expected.len()).cloned()).collect())
            }
            _ => got.clone(),
        }
    }

    fn object(&self, expected: &Map<String, Value>, got: &Map<String, Value>) -> Map<String, Value> {
        let order = |one: &Map<String, Value>, other: &Map<String, Value>| -> Vec<String> {
            one.keys().filter(|name| other.contains_key(*name)).cloned().collect()
        };
        if self.rules.exact && order(expected, got) != order(got, expected) {
            let member = |(name, got): (&String, &Value)| {
                (name.clone(), expected.get(name).map_or_else(|| got.clone(), |expected| self.value(expected, got)))
            };
            return got.iter().map(member).collect();
        }
        let kept = expected.iter().filter_map(|(name, expected)| match got.get(name) {
            Some(got) => Some((name.clone(), self.value(expected, got))),
            None => self.are_same(&only(name, expected), &none()).then(|| (name.clone(), expected.clone())),
        });
        let is_new = |(name, got): &(&String, &Value)| {
            !expected.contains_key(*name) && !self.are_same(&none(), &only(name, got))
        };
        let new = got.iter().filter(is_new).map(|(name, got)| (name.clone(), got.clone()));
        kept.chain(new).collect()
    }

    fn are_same(&self, expected: &Value, got: &Value) -> bool {
        compare(expected, got, self.tolerance, self.rules).is_empty()
    }
}

fn only(name: &str, value: &Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value.clone())]))
}

fn none() -> Value {
    Value::Object(Map::new())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_as_expected_stays() {
        let exact = Rules { exact: true, ..Rules::default() };
        let (plain, package) = (Rules::default(), Tolerance::Package);
        for (expected, got, tolerance, rules, settled) in [
            (json!({"a": 1, "b": 2}), json!({"b": 3, "a": 1}), Tolerance::None, plain, r#"{"a":1,"b":3}"#),
            (json!({"a": 1, "b": 2}), json!({"b": 3, "a": 1}), Tolerance::None, exact, r#"{"b":3,"a":1}"#),
            (json!({"a": 1, "b": 2}), json!({"c": [], "b": 2}), Tolerance::None, plain, r#"{"b":2,"c":[]}"#),
            (json!([0.1, 2]), json!([0.100_000_000_000_1, 3, 4]), Tolerance::None, plain, "[0.1,3,4]"),
            (
                json!({"n": "SKIP_NUMBER", "at": "XXXX-XX-XX", "z": null, "v": 1}),
                json!({"n": 5, "at": "2026-01-02", "v": 2, "warnings": []}),
                package,
                plain,
                r#"{"n":"SKIP_NUMBER","at":"XXXX-XX-XX","z":null,"v":2}"#,
            ),
        ] {
            let new = Settled::new(&Expected::Value(expected), got, tolerance, rules).new;
            assert_eq!(new.to_string(), settled);
        }
    }
}
