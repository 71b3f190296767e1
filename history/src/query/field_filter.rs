//! Filters by the value of a field, as in `fields.temperature > 30`.

use std::{cmp::Ordering, fmt, str::FromStr};

use crate::query::json_path::{self, FieldValue};

/// A filter by the value of a field of the result, as in `fields.temperature > 30`.
///
/// The path has keys and the positions of array elements, each after a dot; other keys than words are in double quotes:
/// `fields."air temperature"`. The operator is one of `=`, `!=`, `<`, `<=`, `>` and `>=`, the value a number, `true`,
/// `false`, `null`, or a text in double quotes. Values of different types are neither equal nor less nor greater; `!=`
/// needs the field to be there.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldFilter {
    pub(crate) path: Vec<String>,
    operator: Operator,
    value: Literal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Number(f64),
    Text(String),
    Bool(bool),
    Null,
}

/// A text is not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field filter not valid: {0}, as in `fields.temperature > 30`")]
pub struct FieldFilterError(&'static str);

/// Longest first, so that none hides another.
const OPERATORS: [(&str, Operator); 7] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("=", Operator::Equal),
];

impl FieldFilter {
    /// Returns true if the field of this result, a JSON object, has such a value.
    pub(crate) fn matches(&self, result: &str) -> bool {
        json_path::find(result, &self.path).is_some_and(|found| self.accepts(&found))
    }

    /// Returns true if the filter accepts this value.
    pub(crate) fn accepts(&self, found: &FieldValue) -> bool {
        let order = match (found, &self.value) {
            (FieldValue::Number(left), Literal::Number(right)) => left.partial_cmp(right),
            (FieldValue::Text(left), Literal::Text(right)) => Some(left.as_str().cmp(right)),
            (FieldValue::Bool(left), Literal::Bool(right)) => Some(left.cmp(right)),
            (FieldValue::Null, Literal::Null) => Some(Ordering::Equal),
            _ => None,
        };
        self.operator.accepts(order)
    }
}

impl Operator {
    /// Returns true if the operator accepts this order of field and value; none if they have no order.
    fn accepts(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

impl FromStr for FieldFilter {
    type Err = FieldFilterError;

    fn from_str(text: &str) -> Result<Self, FieldFilterError> {
        let mut rest = text.trim().strip_prefix("fields").ok_or(FieldFilterError("it begins with `fields.`"))?;
        let mut path = Vec::new();
        while let Some(after) = rest.strip_prefix('.') {
            let (key, after) = key(after)?;
            path.push(key);
            rest = after;
        }
        if path.is_empty() {
            return Err(FieldFilterError("it has a path, such as `fields.temperature`"));
        }
        let rest = rest.trim_start();
        let operator = OPERATORS.into_iter().find_map(|(name, operator)| Some((operator, rest.strip_prefix(name)?)));
        let (operator, value) = operator.ok_or(FieldFilterError("one of =, !=, <, <=, > and >= follows the path"))?;
        Ok(Self { path, operator, value: value.trim().parse()? })
    }
}

/// A key at the start of a text, and what follows it.
fn key(text: &str) -> Result<(String, &str), FieldFilterError> {
    if text.starts_with('"') {
        let mut texts = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let key = texts.next().and_then(Result::ok).ok_or(FieldFilterError("a key in double quotes does not end"))?;
        return Ok((key, text.get(texts.byte_offset()..).unwrap_or_default()));
    }
    let end = text.find(|sign: char| sign.is_whitespace() || ".=!<>\"".contains(sign)).unwrap_or(text.len());
    let (key, rest) = text.split_at(end);
    if key.is_empty() { Err(FieldFilterError("a key of the path is missing")) } else { Ok((key.to_owned(), rest)) }
}

impl FromStr for Literal {
    type Err = FieldFilterError;

    fn from_str(text: &str) -> Result<Self, FieldFilterError> {
        match serde_json::from_str(text) {
            Ok(serde_json::Value::Number(number)) => Ok(Self::Number(number.as_f64().unwrap_or(f64::NAN))),
            Ok(serde_json::Value::String(text)) => Ok(Self::Text(text)),
            Ok(serde_json::Value::Bool(value)) => Ok(Self::Bool(value)),
            Ok(serde_json::Value::Null) => Ok(Self::Null),
            _ => Err(FieldFilterError("the value is a number, true, false, null, or a text in double quotes")),
        }
    }
}

impl fmt::Display for FieldFilter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("fields")?;
        for key in &self.path {
            write!(out, ".{}", serde_json::Value::from(key.as_str()))?;
        }
        let name = OPERATORS.into_iter().rev().find(|(_, operator)| *operator == self.operator).map(|(name, _)| name);
        write!(out, " {} ", name.unwrap_or_default())?;
        match &self.value {
            Literal::Number(number) => write!(out, "{number}"),
            Literal::Text(text) => write!(out, "{}", serde_json::Value::from(text.as_str())),
            Literal::Bool(value) => write!(out, "{value}"),
            Literal::Null => out.write_str("null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"temperature":21.5,"air temperature":{"in":[1,{"x":"a"}]},"on":true,"none":null,"s":"b"}"#;

    fn matches(filter: &str) -> bool {
        let filter: FieldFilter = filter.parse().unwrap();
        assert_eq!(filter.to_string().parse().as_ref(), Ok(&filter));
        filter.matches(RESULT)
    }

    #[test]
    fn values_are_compared_as_numbers_texts_and_booleans() {
        for filter in [
            "fields.temperature > 21",
            "fields.temperature>=21.5",
            "fields.temperature < 1e3",
            "fields.temperature != 21",
            "fields.temperature != \"21.5\"",
            "fields.temperature = 21.50",
            " fields.\"air temperature\".in.0 == 1 ",
            "fields.\"air temperature\".in.1.x=\"a\"",
            "fields.on = true",
            "fields.none = null",
            "fields.s > \"a\"",
        ] {
            assert!(matches(filter), "{filter}");
        }
        for filter in [
            "fields.temperature > 21.5",
            "fields.temperature = \"21.5\"",
            "fields.missing != 1",
            "fields.on = 1",
            "fields.on.x = 1",
            "fields.s < \"a\"",
            "fields.\"air temperature\".in.2 = 1",
        ] {
            assert!(!matches(filter), "{filter}");
        }
    }

    #[test]
    fn other_texts_are_no_filters() {
        for text in [
            "",
            "fields",
            "fields > 1",
            "fields. > 1",
            "fields.a",
            "fields.a >",
            "fields.a ~ 1",
            "temperature > 1",
            "fields.a > b",
            "fields.a = 'b'",
            "fields.a = {}",
            "fields.\"a > 1",
            "fields.a..b > 1",
            "fields.a > 1 2",
            "fieldsa > 1",
        ] {
            assert!(text.parse::<FieldFilter>().is_err(), "{text}");
        }
    }
}
