//! Ids, validated when they are parsed.

use std::{borrow::Borrow, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// Maximum length of an id, in characters.
const LENGTH_MAX: usize = 36;

/// Reasons for refusing a text as an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("{what} not valid: can not be empty")]
    Empty {
        /// The kind of id.
        what: &'static str,
    },
    /// The text is too long or has characters that ids cannot have.
    #[error(
        "{what} not valid: must have 2 to {LENGTH_MAX} characters, which are lowercase letters, digits, and single dashes \
         or underscores between them"
    )]
    Format {
        /// The kind of id.
        what: &'static str,
    },
}

/// Pattern of a valid id, apart from the length. [`check`] implements it.
const PATTERN: &str = "^[0-9a-z](?:[_-]?[0-9a-z]){1,35}$";

/// Checks [`PATTERN`] and at most [`LENGTH_MAX`] characters.
fn check(what: &'static str, text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty { what });
    }
    let alphanumeric = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    let allowed = text.bytes().all(|byte| alphanumeric(byte) || matches!(byte, b'-' | b'_'));
    let mut words = text.split(['-', '_']);
    let separated = words.all(|word| !word.is_empty());
    if allowed && separated && (2..=LENGTH_MAX).contains(&text.len()) { Ok(()) } else { Err(IdError::Format { what }) }
}

/// A device, by the ids of its application and of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DevicePath<'a> {
    /// The application.
    pub app_id: &'a AppId,
    /// The device in it.
    pub dev_id: &'a DevId,
}

impl<'a> From<&'a (AppId, DevId)> for DevicePath<'a> {
    fn from((app_id, dev_id): &'a (AppId, DevId)) -> Self {
        Self { app_id, dev_id }
    }
}

impl fmt::Display for DevicePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.app_id, self.dev_id)
    }
}

macro_rules! id {
    ($(#[doc = $doc:literal])+ $name:ident, $what:literal, $example:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(extend("pattern" = PATTERN, "minLength" = 2, "maxLength" = LENGTH_MAX, "examples" = [$example]))]
        pub struct $name(String);

        impl $name {
            /// Returns the id as a string.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                check($what, text).map(|()| Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                check($what, &text).map(|()| Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }
    };
}

id!(
    /// The id of an application, unique in the network.
    AppId,
    "AppID",
    "my-app"
);
id!(
    /// The id of a device, unique in its application.
    DevId,
    "DevID",
    "my-device"
);
id!(
    /// The id of a webhook, unique in its application.
    WebhookId,
    "WebhookID",
    "my-webhook"
);
id!(
    /// The id of a gateway, unique in the network.
    GatewayId,
    "GatewayID",
    "my-gateway"
);
id!(
    /// The id of a network component, such as a handler.
    ComponentId,
    "ComponentID",
    "my-handler"
);
id!(
    /// The id of an OAuth client.
    ClientId,
    "ClientID",
    "my-client"
);
id!(
    /// The name with which a user logs in.
    Username,
    "Username",
    "alice"
);

/// The immutable id of a user: 24 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^[0-9a-f]{24}$"))]
pub struct UserId(String);

impl UserId {
    /// Builds an id from 12 random bytes.
    pub fn from_bytes(bytes: [u8; 12]) -> Self {
        Self(hex::encode(bytes))
    }

    /// Returns the id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a list from settings. A name looks almost like an id, so the error says what is wanted.
    pub fn deserialize_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Self>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let must = "must be ids of users, of 24 hexadecimal digits, as `airlock account users show NAME` prints them";
        texts.into_iter().map(|text| Self::try_from(text).map_err(|_| D::Error::custom(must))).collect()
    }
}

impl FromStr for UserId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for UserId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits && text.len() == 24 { Ok(Self(text)) } else { Err(IdError::Format { what: "UserID" }) }
    }
}

impl From<UserId> for String {
    fn from(id: UserId) -> Self {
        id.0
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: Ids consist of lowercase letters, digits, `-` and `_`
    #[test]
    fn accepts_what_clients_accept() {
        for id in ["a1", "abc", "my-app", "my_app_2", "0-0", &"a".repeat(36)] {
            assert_eq!(id.parse::<AppId>().map(String::from).as_deref(), Ok(id));
        }
    }

    #[test]
    fn a_list_of_users_has_ids_and_no_names() {
        let read = |texts: serde_json::Value| UserId::deserialize_list(texts).map(|ids| ids.len());
        assert_eq!(read(serde_json::json!(["0102030405060708090a0b0c"])).unwrap(), 1);
        let error = read(serde_json::json!(["alice"])).unwrap_err().to_string();
        assert!(error.contains("must be ids of users"), "{error}");
    }

    // Conformance: Ids consist of lowercase letters, digits, `-` and `_`
    #[test]
    fn refuses_everything_else() {
        for id in ["a", "-ab", "ab-", "a--b", "a-_b", "Ab", "a b", "ä1", "a/b", "a.b", "a+", "#", &"a".repeat(37)] {
            assert_eq!(id.parse::<AppId>(), Err(IdError::Format { what: "AppID" }), "{id}");
        }
        let error = "Bob".parse::<Username>().unwrap_err().to_string();
        let must =
            "must have 2 to 36 characters, which are lowercase letters, digits, and single dashes or underscores";
        assert_eq!(error, format!("Username not valid: {must} between them"));
        assert_eq!("".parse::<DevId>(), Err(IdError::Empty { what: "DevID" }));
    }
}
