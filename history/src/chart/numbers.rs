//! The numbers in a result, with their paths, read without a tree of its values.

use std::fmt;

use memchr::memmem::Finder;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Maximum length of a path, in bytes. Longer ones are left out.
const PATH_BYTES_MAX: usize = 200;
/// Maximum number of members looked at in an uplink, without those that cannot lead to the only path.
const MEMBERS_MAX: usize = 1000;

/// Numbers that are wanted of each result.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The path of the only one; all if there is none.
    only: Option<String>,
    /// The end of its last key with the quote and the colon, as functions return it: without it there is no such field.
    key: Option<Finder<'static>>,
}

impl Wanted {
    pub(super) fn new(only: Option<&str>) -> Self {
        let key = only.and_then(|path| path.rsplit('.').next()).map(|key| {
            let text = format!("{}:", serde_json::Value::from(key));
            Finder::new(text.trim_start_matches('"')).into_owned()
        });
        Self { only: only.map(str::to_owned), key }
    }

    /// Shows each number with its path, such as `temperature` or `battery.volts`. Lists are left out, because their
    /// members have no names. Returns false if the text is not JSON: then what was shown is not valid.
    pub(super) fn find(&self, json: &str, mut show: impl FnMut(&str, f64)) -> bool {
        if self.key.as_ref().is_some_and(|key| key.find(json.as_bytes()).is_none()) {
            return true;
        }
        let (mut path, mut members_left) = (String::new(), MEMBERS_MAX);
        let walk =
            Walk { path: &mut path, only: self.only.as_deref(), members_left: &mut members_left, show: &mut show };
        let mut json = serde_json::Deserializer::from_str(json);
        walk.deserialize(&mut json).and_then(|()| json.end()).is_ok()
    }
}

/// A value at a path.
struct Walk<'a, F> {
    path: &'a mut String,
    only: Option<&'a str>,
    members_left: &'a mut usize,
    show: &'a mut F,
}

impl<F: FnMut(&str, f64)> Walk<'_, F> {
    fn number<E>(self, number: f64) -> Result<(), E> {
        let Self { path, only, show, .. } = self;
        let is_wanted = only.map_or(!path.is_empty(), |only| only == path.as_str());
        if is_wanted && number.is_finite() {
            show(path.as_str(), number);
        }
        Ok(())
    }

    /// The value at the path as it is now.
    fn below(&mut self) -> Walk<'_, F> {
        let (path, members_left, show) = (&mut *self.path, &mut *self.members_left, &mut *self.show);
        Walk { path, only: self.only, members_left, show }
    }

    /// Returns true if the path is that of a wanted number, or of an object that may have one.
    fn may_have(&self) -> bool {
        let leads = |only: &str| {
            let rest = only.strip_prefix(self.path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.path.len() <= PATH_BYTES_MAX && self.only.is_none_or(leads)
    }
}

impl<'de, F: FnMut(&str, f64)> DeserializeSeed<'de> for Walk<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str, f64)> Visitor<'de> for Walk<'_, F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.number(value as f64)
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.number(value as f64)
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.number(value)
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let length = self.path.len();
        loop {
            self.path.truncate(length);
            if length > 0 {
                self.path.push('.');
            }
            if members.next_key_seed(Key(&mut *self.path))?.is_none() {
                break;
            }
            if *self.members_left > 0 && self.may_have() {
                *self.members_left -= 1;
                members.next_value_seed(self.below())?;
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        self.path.truncate(length);
        Ok(())
    }
}

/// Adds a key to a path.
struct Key<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<(), E> {
        self.0.push_str(key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that are found; none if the text is not JSON.
    fn found(only: Option<&str>, json: &str) -> Vec<(String, f64)> {
        let mut found = Vec::new();
        let is_json = Wanted::new(only).find(json, |path, number| found.push((path.to_owned(), number)));
        if is_json { found } else { Vec::new() }
    }

    #[test]
    fn numbers_are_found_by_path() {
        let json =
            r#"{"a": 1, "b": {"c": -2.5, "d": "3", "e": {"f": 7}}, "g": [4, {"h": 1}], "i": true, "j": null, "k": 8}"#;
        let all = [("a", 1.0), ("b.c", -2.5), ("b.e.f", 7.0), ("k", 8.0)];
        assert_eq!(found(None, json), all.map(|(path, number)| (path.to_owned(), number)));
        for none in ["", "7", "[1]", "{", "{}", r#"{"a": 1} x"#, r#"{"a": 1, "b": }"#] {
            assert_eq!(found(None, none), [], "{none}");
        }
        let long = format!(r#"{{"{}": 1}}"#, "x".repeat(PATH_BYTES_MAX + 1));
        assert_eq!(found(None, &long), []);
        let deep = format!("{}1{}", r#"{"a":"#.repeat(1000), "}".repeat(1000));
        assert_eq!(found(None, &deep), []);
    }

    #[test]
    fn one_path_selects_its_number_and_no_other() {
        let json = r#"{"t":1,"b":{"t":2,"tt":3},"b.u":4,"x":"\"t\":9","ü\"":5,"":6}"#;
        for (only, expected) in [("t", 1.0), ("b.t", 2.0), ("b.tt", 3.0), ("b.u", 4.0), ("ü\"", 5.0), ("", 6.0)] {
            assert_eq!(found(Some(only), json), [(only.to_owned(), expected)], "{only}");
        }
        for none in ["b", "t.t", "u", "x", "b.", ".t"] {
            assert_eq!(found(Some(none), json), [], "{none}");
        }
    }

    #[test]
    fn so_many_members_of_an_uplink_are_looked_at_and_no_more() {
        let members: Vec<_> = (0..2 * MEMBERS_MAX).map(|number| format!(r#""f{number}":1"#)).collect();
        let json = format!("{{{}}}", members.join(","));
        assert_eq!(found(None, &json).len(), MEMBERS_MAX);
        let last = format!("f{}", 2 * MEMBERS_MAX - 1);
        assert_eq!(found(Some(&last), &json), [(last, 1.0)], "a single one is found wherever it is");
    }
}
