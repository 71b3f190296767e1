//! Credentials. None of them can be printed by accident.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Maximum length of a credential or another secret from outside, in bytes: room for a token.
///
/// Every way in checks it first, so that what follows (hashing, caching, asking the account service) has a bound.
pub const CREDENTIAL_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of an access key, in bytes. Refused ones are remembered, so they are short.
pub const ACCESS_KEY_BYTES_MAX: usize = 512;

/// A string that must not appear in logs, errors or debug output.
#[derive(Clone, Default, PartialEq, Eq, Hash, Zeroize, ZeroizeOnDrop, Serialize, JsonSchema)]
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

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Self(String::deserialize(deserializer)?);
        check_length(text.expose(), CREDENTIAL_BYTES_MAX).map_err(D::Error::custom)?;
        Ok(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

/// An access key: `<issuer>.<secret>`, with exactly one dot. As the credential of a call it may lack the issuer, which
/// clients of v2 leave out.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct AccessKey {
    text: Secret,
    dot: Option<usize>,
}

impl AccessKey {
    /// Joins an issuer's id and the secret part.
    pub fn new(issuer: &str, secret: &str) -> Result<Self, CredentialError> {
        format!("{issuer}.{secret}").parse()
    }

    /// Parses a key that may lack its issuer.
    fn from_credential(text: &str) -> Result<Self, CredentialError> {
        if text.is_empty() || text.contains('.') || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return text.parse();
        }
        check_length(text, ACCESS_KEY_BYTES_MAX)?;
        Ok(Self { text: Secret::new(text), dot: None })
    }

    /// The account service that issued the key; `None` if the key does not say.
    pub fn issuer(&self) -> Option<&str> {
        self.dot.map(|dot| &self.text.expose()[..dot])
    }

    /// The key with this issuer in front, if it has none.
    pub fn or_issued_by(&self, issuer: &str) -> Result<Self, CredentialError> {
        match self.dot {
            Some(_) => Ok(self.clone()),
            None => Self::new(issuer, self.expose()),
        }
    }

    /// Returns the whole key, for sending and looking up. Never log it.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "AccessKey({}.…)", self.issuer().unwrap_or_default())
    }
}

impl FromStr for AccessKey {
    type Err = CredentialError;

    fn from_str(text: &str) -> Result<Self, CredentialError> {
        check_length(text, ACCESS_KEY_BYTES_MAX)?;
        let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        match text.find('.') {
            Some(dot) if printable && dot > 0 && dot + 1 < text.len() && text.matches('.').count() == 1 => {
                Ok(Self { text: Secret::new(text), dot: Some(dot) })
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

/// Reasons for refusing a text as a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// Not an access key.
    #[error("access key not valid: must look like <issuer>.<secret>, with one dot")]
    AccessKey,
    /// It is longer than any credential.
    #[error("credential not valid: it has {bytes} bytes, at most {bytes_max} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest that is allowed.
        bytes_max: usize,
    },
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
            token if scheme.eq_ignore_ascii_case("bearer") => Self::from_token(token),
            key if scheme.eq_ignore_ascii_case("key") => Self::from_key(key),
            _ => Err(CredentialError::Scheme),
        }
    }

    /// A token, whose signature is not checked yet.
    pub fn from_token(text: &str) -> Result<Self, CredentialError> {
        check_length(text, CREDENTIAL_BYTES_MAX)?;
        Ok(Self::Token(Secret::new(text)))
    }

    /// An access key, which may lack its issuer.
    pub fn from_key(text: &str) -> Result<Self, CredentialError> {
        AccessKey::from_credential(text).map(Self::Key)
    }

    /// Reads a password that is an access key, or else a token.
    pub fn from_password(text: &str) -> Result<Self, CredentialError> {
        Self::from_key(text).or_else(|_| Self::from_token(text))
    }

    /// Formats the value of an `Authorization` header.
    pub fn to_header(&self) -> String {
        match self {
            Self::Token(token) => format!("Bearer {}", token.expose()),
            Self::Key(key) => format!("Key {}", key.expose()),
        }
    }
}

fn check_length(text: &str, bytes_max: usize) -> Result<(), CredentialError> {
    match text.len() {
        bytes if bytes > bytes_max => Err(CredentialError::TooLong { bytes, bytes_max }),
        _ => Ok(()),
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
    fn refuses_other_schemes_and_malformed_keys() {
        for header in ["", "Bearer", "Bearer ", "Basic YTpi", "Key no dot", "Key a.b.c", "Key .b", "Key a."] {
            assert!(Credential::from_header(header).is_err(), "{header}");
        }
    }

    #[test]
    fn only_a_credential_may_lack_its_issuer() {
        let Ok(Credential::Key(key)) = Credential::from_header("Key secret") else { panic!("an access key") };
        assert_eq!(key.or_issued_by("issuer").unwrap().expose(), "issuer.secret");
        let whole: AccessKey = "other.secret".parse().unwrap();
        assert_eq!(whole.or_issued_by("issuer").unwrap(), whole);
        assert!("secret".parse::<AccessKey>().is_err());
    }

    #[test]
    fn refuses_credentials_that_are_too_long() {
        let (key, token) = (format!("a.{}", "b".repeat(510)), "a".repeat(CREDENTIAL_BYTES_MAX));
        assert!(Credential::from_header(&format!("Key {key}")).is_ok());
        assert!(Credential::from_header(&format!("Bearer {token}")).is_ok());
        assert_eq!(Credential::from_password(&key), Ok(Credential::Key(key.parse().unwrap())));
        assert_eq!(Credential::from_password(&token), Credential::from_token(&token));
        assert!(serde_json::from_value::<Secret>(token.clone().into()).is_ok());

        let (key, token) = (key + "b", token + "a");
        let is_too_long = |result| matches!(result, Err(CredentialError::TooLong { .. }));
        assert!(is_too_long(Credential::from_header(&format!("Key {key}"))));
        assert!(is_too_long(Credential::from_header(&format!("Bearer {token}"))));
        assert!(is_too_long(Credential::from_password(&token)));
        let error = serde_json::from_value::<Secret>(token.into()).unwrap_err();
        assert!(error.to_string().contains("at most 16384 are allowed"), "{error}");
    }

    #[test]
    fn secrets_do_not_print() {
        let key: AccessKey = "issuer.hush".parse().unwrap();
        let shown = format!("{:?} {:?}", Credential::Key(key), Credential::Token(Secret::new("hush")));
        assert!(!shown.contains("hush"), "{shown}");
    }
}
