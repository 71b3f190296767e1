//! Where people reach the service: what links, redirects and metadata begin with.

use std::{fmt, str::FromStr};

use axum::http::Uri;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

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
        let must = "must look like https://account.example.com, without anything after the path";
        let refused = || Error::Setting { name: "account.public_url", must };
        let text = text.trim_end_matches('/');
        let uri: Uri = text.parse().map_err(|_| refused())?;
        let scheme = uri.scheme_str().filter(|scheme| ["http", "https"].contains(scheme)).ok_or_else(refused)?;
        let host = uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(refused)?;
        // Browsers write it in small letters, and it is compared with what they write.
        let small = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        if uri.query().is_some() || text.contains('#') || !small {
            return Err(refused());
        }
        Ok(Self { text: text.to_owned(), origin_end: scheme.len() + "://".len() + host.as_str().len() })
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
