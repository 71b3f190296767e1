//! The members of a JSON object, each as its text: what is not changed stays as it was, to the digit.

use std::{borrow::Cow, collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

/// The members of a JSON object, in their order. Of several with the same name there is only the last, which is the one
/// that most readers take.
#[derive(Clone, Debug)]
pub struct RawObject<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> RawObject<'a> {
    /// Parses an object; an error for anything else.
    pub fn parse(text: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text)
    }

    /// The text of a member.
    pub fn raw(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// The same, for as long as the text lives that was parsed; none for a member that was changed.
    pub fn parsed(&self, name: &str) -> Option<&'a RawValue> {
        match self.0.iter().find(|(key, _)| key == name) {
            Some((_, Cow::Borrowed(value))) => Some(value),
            _ => None,
        }
    }

    /// A member; none if it is missing or of another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.raw(name).and_then(|value| serde_json::from_str(value.get()).ok())
    }

    /// Returns true if there is such a member, other than null.
    pub fn has(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|value| value.get() != "null")
    }

    /// Replaces a member, or adds it behind the member `after`, or else at the end.
    pub fn set(&mut self, name: &'a str, value: Box<RawValue>, after: &str) {
        let value = Cow::Owned(value);
        if let Some((_, old)) = self.0.iter_mut().find(|(key, _)| key == name) {
            *old = value;
            return;
        }
        let place = self.0.iter().position(|(key, _)| key == after).map_or(self.0.len(), |place| place + 1);
        self.0.insert(place, (Cow::Borrowed(name), value));
    }

    /// Replaces each member by what `replace` makes of it, or removes it.
    pub fn replace_each(&mut self, mut replace: impl FnMut(&str, &RawValue) -> Option<Box<RawValue>>) {
        self.0.retain_mut(|(name, value)| match replace(name.as_ref(), &*value) {
            Some(new) => {
                *value = Cow::Owned(new);
                true
            }
            None => false,
        });
    }

    /// Returns true if the object has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes a member if it is there.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(Cow<'de, str>, Cow<'de, RawValue>)>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, Cow::Borrowed(map.next_value::<&'de RawValue>()?)));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Object).map(|members| Self(last_of_each(members)))
    }
}

fn last_of_each<'a, V>(members: Vec<(Cow<'a, str>, V)>) -> Vec<(Cow<'a, str>, V)> {
    let mut names = HashSet::with_capacity(members.len());
    let mut last: Vec<_> = members.into_iter().rev().filter(|(name, _)| names.insert(name.clone())).collect();
    last.reverse();
    last
}

impl Serialize for RawObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The name of a member, which is only copied if it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, edit: impl FnOnce(&mut RawObject<'_>)) -> String {
        let mut members = RawObject::parse(text.as_bytes()).unwrap();
        edit(&mut members);
        serde_json::to_string(&members).unwrap()
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was() {
        let text = r#"{"b":1.50,"a":[1e3, 12345678901234567890],"new\u0041":{"x" : -0.0},"data":"AQ=="}"#;
        let expected = text.replace("new\\u0041", "newA");
        assert_eq!(edited(text, |_| ()), expected);
    }

    #[test]
    fn of_members_with_the_same_name_there_is_only_the_last() {
        let text = r#"{"object":null,"a":1,"\u006fbject":{"new":1},"b":2}"#;
        assert_eq!(edited(text, |_| ()), r#"{"a":1,"object":{"new":1},"b":2}"#);
        assert!(RawObject::parse(text.as_bytes()).unwrap().has("object"));
    }

    #[test]
    fn replaces_adds_and_removes_members() {
        let text = r#"{"data":"AQ==","object":{"old":1},"rxInfo":[]}"#;
        assert_eq!(
            edited(text, |members| members.set("object", raw("{}"), "data")),
            r#"{"data":"AQ==","object":{},"rxInfo":[]}"#
        );
        assert_eq!(
            edited(r#"{"data":"","x":0}"#, |members| members.set("object", raw("{}"), "data")),
            r#"{"data":"","object":{},"x":0}"#
        );
        assert_eq!(edited("{}", |members| members.set("object", raw("{}"), "data")), r#"{"object":{}}"#);
        assert_eq!(edited(text, |members| members.remove("object")), r#"{"data":"AQ==","rxInfo":[]}"#);
    }

    #[test]
    fn rejects_what_is_no_object() {
        for text in ["", "[]", "1", "{", "\u{a}\u{24}bf75e9d6", "{\"a\":}", "{} {}"] {
            assert!(RawObject::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
