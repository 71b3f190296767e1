//! Topics for single fields: `<app_id>/devices/<dev_id>/up/<field>`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Calls `each` with the topic and JSON of every member of the object `fields`, an object before its members.
///
/// Skips names that are no valid topic level.
pub(super) fn for_each(above: &str, fields: &RawValue, each: &mut impl FnMut(String, &str)) -> serde_json::Result<()> {
    let Members(members) = serde_json::from_str(fields.get())?;
    for (name, value) in members {
        let Some(name) = name.topic_level() else { continue };
        let topic = format!("{above}/{name}");
        each(topic.clone(), value.get());
        if value.get().starts_with('{') {
            for_each(&topic, value, each)?;
        }
    }
    Ok(())
}

/// The members of an object, with their values as they were written.
struct Members<'a>(Vec<(Name, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

/// The name of a member, read as bytes because JavaScript allows lone surrogates in it, which a string cannot hold.
struct Name(Vec<u8>);

impl Name {
    fn topic_level(&self) -> Option<&str> {
        let name = std::str::from_utf8(&self.0).ok()?;
        (!name.is_empty() && !name.contains(['+', '#', '*', '\0'])).then_some(name)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Name, E> {
        Ok(Name(name.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(fields: &str) -> Vec<(String, String)> {
        let mut seen = Vec::new();
        let mut each = |topic, value: &str| seen.push((topic, value.to_owned()));
        for_each("up", serde_json::from_str(fields).unwrap(), &mut each).unwrap();
        seen
    }

    #[test]
    fn gives_every_field_a_topic_except_those_with_invalid_names() {
        let fields = r##"{"t":21.5,"gps":{"lat":1,"fix":[1,2]},"a+b":1,"":2,"#":3}"##;
        let expected =
            [("up/t", "21.5"), ("up/gps", r#"{"lat":1,"fix":[1,2]}"#), ("up/gps/lat", "1"), ("up/gps/fix", "[1,2]")];
        assert_eq!(topics(fields), expected.map(|(topic, value)| (topic.to_owned(), value.to_owned())));
    }

    #[test]
    fn publishes_values_with_lone_surrogates_and_skips_such_names() {
        let expected = [("up/a", r#""\ud800""#), ("up/ä", "1")];
        let expected = expected.map(|(topic, value)| (topic.to_owned(), value.to_owned()));
        assert_eq!(topics(r#"{"a":"\ud800","\udbff":2,"\u00e4":1}"#), expected);
    }
}
