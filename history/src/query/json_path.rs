//! Finds one value in a JSON text without reading the others.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value that was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldValue {
    Number(f64),
    Text(String),
    Bool(bool),
    Null,
    /// An object or an array.
    Other,
}

/// The value at a path of keys and positions. None if there is none.
pub(crate) fn find(json: &str, path: &[String]) -> Option<FieldValue> {
    Step(path).deserialize(&mut serde_json::Deserializer::from_str(json)).ok().flatten()
}

/// Rest of the path.
#[derive(Clone, Copy)]
struct Step<'a>(&'a [String]);

impl Step<'_> {
    fn scalar<E>(self, found: FieldValue) -> Result<Option<FieldValue>, E> {
        Ok(self.0.is_empty().then_some(found))
    }
}

impl<'de> DeserializeSeed<'de> for Step<'_> {
    type Value = Option<FieldValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<FieldValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        self.scalar(FieldValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        self.scalar(FieldValue::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        self.scalar(FieldValue::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        self.scalar(FieldValue::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        self.scalar(FieldValue::Text(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        self.scalar(FieldValue::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Self::Value, A::Error> {
        let next = self.0.split_first().and_then(|(key, rest)| Some((key.parse::<usize>().ok()?, Step(rest))));
        let mut found = if self.0.is_empty() { Some(FieldValue::Other) } else { None };
        let mut position = 0;
        loop {
            match next {
                Some((wanted, step)) if wanted == position => match values.next_element_seed(step)? {
                    Some(value) => found = value,
                    None => return Ok(found),
                },
                _ if values.next_element::<IgnoredAny>()?.is_none() => return Ok(found),
                _ => {}
            }
            position += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = if self.0.is_empty() { Some(FieldValue::Other) } else { None };
        let next = self.0.split_first();
        while let Some(is_wanted) = members.next_key_seed(Key(next.map(|(key, _)| key.as_str())))? {
            match next {
                Some((_, rest)) if is_wanted => found = members.next_value_seed(Step(rest))?,
                _ => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        Ok(found)
    }
}

/// Compares a key, without a copy of it.
struct Key<'a>(Option<&'a str>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = bool;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(self.0 == Some(key))
    }
}
