//! Where people reach the service: what links, redirects and metadata begin with.

use std::{fmt, str::FromStr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// What is encoded in a parameter of an address. The rest may stand there as it is, and real clients of v2 count on
/// finding a code so.
pub(crate) const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `https://account.example.com`, possibly with a port or a path; never with a slash at the end.
///
/// It comes from the settings alone: what a request says of its host may be anybody's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicUrl {
    text: String,
    origin_end: usize,
}

impl PublicUrl {
    /// Scheme, host and port, as browsers send it in `Origin`.
    pub fn origin(&self) -> &str {
        &self.text[..self.origin_end]
    }

    /// Whether people come over TLS.
    pub fn is_https(&self) -> bool {
        self.text.starts_with("https://")
    }
}

impl FromStr for PublicUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let must = "must look like https://account.example.com, in small letters and without anything after the path";
        let refused = || Error::Setting { name: "account.public_url", must };
        let text = text.trim_end_matches('/');
        let (scheme, rest) = text.split_once("://").ok_or_else(refused)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // Browsers write the host in small letters, and it is compared with what they write.
        let host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte);
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\\\"<>".contains(&byte);
        let whole = !authority.is_empty() && authority.bytes().all(host) && path.bytes().all(plain);
        if !whole || !["http", "https"].contains(&scheme) {
            return Err(refused());
        }
        let origin_end = text.len() - path.len();
        Ok(Self { text: text.to_owned(), origin_end })
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<PublicUrl> for String {
    fn from(url: PublicUrl) -> Self {
        url.text
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_people_is_whole_and_has_an_origin() {
        let cases = [
            ("https://account.example.com", "https://account.example.com"),
            ("https://example.com:8443/account/", "https://example.com:8443"),
            ("http://[::1]:1885", "http://[::1]:1885"),
        ];
        for (text, origin) in cases {
            assert_eq!(text.parse::<PublicUrl>().unwrap().origin(), origin);
        }
        for text in ["", "example.com", "ftp://a.b", "https://", "https://u@a.b", "https://a.b/?x", "https://A.b"] {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
