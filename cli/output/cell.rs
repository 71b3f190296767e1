//! One value of a result, as people and as programs read it.

use std::collections::BTreeMap;

use serde_json::Value;
use types::Timestamp;

use super::local_time::local_time;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// For people; empty if there is nothing to show.
    pub(super) text: String,
    /// For programs.
    pub(super) value: Value,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { text: text.into(), value: value.into() }
    }

    /// Texts, which people see separated by `separator`.
    pub(crate) fn list<T: ToString>(items: &[T], separator: &str) -> Self {
        let texts: Vec<_> = items.iter().map(ToString::to_string).collect();
        Self::new(texts.join(separator), texts)
    }

    /// Numbers by name, which people see on one line; nothing if there are none.
    pub(crate) fn numbers(numbers: BTreeMap<String, u64>) -> Self {
        if numbers.is_empty() {
            return Self::new("", Value::Null);
        }
        let texts: Vec<_> = numbers.iter().map(|(name, number)| format!("{name} {number}")).collect();
        Self::new(texts.join(", "), Value::from_iter(numbers))
    }

    /// Returns the text for people.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The value in a cell of CSV.
    pub(super) fn plain(&self) -> String {
        match &self.value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { value: text.clone().into(), text }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Timestamp> for Cell {
    fn from(time: Timestamp) -> Self {
        Self::new(local_time(time), time.to_rfc3339())
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::new(if value { "yes" } else { "no" }, value)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::new(number.to_string(), number)
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        Self::new(number.to_string(), number)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(|| Self::new("", Value::Null), Into::into)
    }
}
