//! Credentials. None of them can be printed by accident.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A string that must not appear in logs, errors or debug output.
#[derive(Clone, Default, PartialEq, Eq, Hash, Zeroize, ZeroizeOnDrop, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, description = "")]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret string.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the string, for sending and comparing. Never display it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// An access key: `<issuer>.<secret>`, with exactly one dot.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct AccessKey {
    text: Secret,
    dot: usize,
}

impl AccessKey {
    /// Joins an issuer's id and the secret part.
    pub fn new(issuer: &str, secret: &str) -> Result<Self, CredentialError> {
        format!("{issuer}.{secret}").parse()
    }

    /// The account service that issued the key.
    pub fn issuer(&self) -> &str {
        &self.text.expose()[..self.dot]
    }

    /// Returns the whole key, for sending and looking up. Never log it.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "AccessKey({}.…)", self.issuer())
    }
}

impl FromStr for AccessKey {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<Self, CredentialError> {
        let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        match text.find('.') {
            Some(dot) if printable && dot > 0 && dot + 1 < text.len() && text.matches('.').count() == 1 => {
                Ok(Self { text: Secret::new(text), dot })
            }
            _ => Err(CredentialError::AccessKey),
        }
    }
}

impl TryFrom<String> for AccessKey {
    type Error = CredentialError;

    fn try_from(text: String) -> Result<Self, CredentialError> {
        text.parse()
    }
}

impl From<AccessKey> for String {
    fn from(key: AccessKey) -> Self {
        key.expose().to_owned()
    }
}

/// The credential of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Credential {
    /// A signed token.
    Token(Secret),
    /// An application's access key.
    Key(AccessKey),
}

/// Why a text is not a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Not an access key.
    #[error("access key not valid: must look like <issuer>.<secret>, with one dot")]
    AccessKey,
    /// The header has an unknown scheme.
    #[error("authorization not valid: must be `Bearer <token>` or `Key <access key>`")]
    Scheme,
}

impl Credential {
    /// Parses the value of an `Authorization` header; the scheme is case-insensitive.
    pub fn from_header(value: &str) -> Result<Self, CredentialError> {
        let (scheme, rest) = value.trim().split_once(' ').ok_or(CredentialError::Scheme)?;
        match rest.trim() {
            "" => Err(CredentialError::Scheme),
            token if scheme.eq_ignore_ascii_case("bearer") => Ok(Self::Token(Secret::new(token))),
            key if scheme.eq_ignore_ascii_case("key") => key.parse().map(Self::Key),
            _ => Err(CredentialError::Scheme),
        }
    }

    /// Formats the value of an `Authorization` header.
    pub fn to_header(&self) -> String {
        match self {
            Self::Token(token) => format!("Bearer {}", token.expose()),
            Self::Key(key) => format!("Key {}", key.expose()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_of_a_header_is_case_insensitive() {
        assert_eq!(Credential::from_header("bearer abc"), Ok(Credential::Token(Secret::new("abc"))));
        let key = Credential::from_header("KEY ttn-account-v2.abc").unwrap();
        assert_eq!(key.to_header(), "Key ttn-account-v2.abc");
    }

    #[test]
    fn rejects_other_schemes_and_malformed_keys() {
        for header in ["", "Bearer", "Bearer ", "Basic YTpi", "Key nodot", "Key a.b.c", "Key .b", "Key a."] {
            assert!(Credential::from_header(header).is_err(), "{header}");
        }
    }

    #[test]
    fn secrets_do_not_print() {
        let key: AccessKey = "issuer.hush".parse().unwrap();
        let shown = format!("{:?} {:?}", Credential::Key(key), Credential::Token(Secret::new("hush")));
        assert!(!shown.contains("hush"), "{shown}");
    }
}
