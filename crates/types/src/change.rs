//! A request's change of a stored value: it stays, it is removed, or it is replaced.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A change of a stored value, as a member of a JSON object says it.
///
/// Give such a member `#[serde(default, skip_serializing_if = "Change::is_keep")]`, so that one that is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// It stays as it is: the member is left out.
    #[default]
    Keep,
    /// It is removed: the member is `null`.
    Remove,
    /// It is replaced.
    Set(T),
}

impl<T> Change<T> {
    /// Returns true if nothing changes.
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// The value after the change; none if it is removed.
    pub fn apply(self, stored: Option<T>) -> Option<T> {
        match self {
            Self::Keep => stored,
            Self::Remove => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<T: Serialize> Serialize for Change<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(value) => serializer.serialize_some(value),
            Self::Keep | Self::Remove => serializer.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Remove, Self::Set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Body {
        #[serde(default, skip_serializing_if = "Change::is_keep")]
        port: Change<u8>,
    }

    #[test]
    fn what_is_left_out_stays_and_null_removes() {
        for (json, port, after) in [
            ("{}", Change::Keep, Some(1)),
            (r#"{"port":null}"#, Change::Remove, None),
            (r#"{"port":2}"#, Change::Set(2), Some(2)),
        ] {
            let body: Body = serde_json::from_str(json).unwrap();
            assert_eq!(body, Body { port: port.clone() });
            assert_eq!(serde_json::to_string(&body).unwrap(), json);
            assert_eq!(port.apply(Some(1)), after);
        }
    }
}
