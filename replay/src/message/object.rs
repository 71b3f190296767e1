//! A JSON object whose members are not parsed until they are asked for: most of a message is metadata that nobody reads.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of an object, in their order.
#[derive(Debug)]
pub(super) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Object<'a> {
    /// The object in a JSON text, if it is one.
    pub(super) fn parse(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// A member that is not null.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.member(name).filter(|value| value.get() != "null")
    }

    /// A member, which may be null.
    pub(super) fn member(&self, name: &str) -> Option<&'a RawValue> {
        // The last one counts, as in JavaScript.
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// A member that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        self.get(name).and_then(|value| Self::parse(value.get()))
    }

    /// A member that is a string.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(text)
    }

    /// The same, to keep.
    pub(super) fn string(&self, name: &str) -> Option<String> {
        self.text(name).map(Cow::into_owned)
    }
}

/// The text of a JSON string.
pub(super) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(value.get()).ok().map(|Text(text)| text)
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Text(name), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}
