//! The URL at which people reach the service.

use std::{fmt, str::FromStr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

use crate::{Error, Result};

/// The characters to escape in a query value. All unreserved ones stay, because v2 clients expect codes unescaped.
pub(crate) const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// An origin such as `https://account.example.com`, possibly with a port, but without a path: the site is at the root.
///
/// It comes from the settings only, because clients can forge the host of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// The origin as browsers send it in `Origin`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if browsers connect over TLS.
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }
}

impl FromStr for PublicUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let must = "must look like https://account.example.com, in lower case and without a path: the site is at \
                    the root of its address";
        let refused = || Error::Setting { name: "account.public_url", must };
        let text = text.strip_suffix('/').unwrap_or(text);
        let (scheme, authority) = text.split_once("://").ok_or_else(refused)?;
        // It is compared with what browsers send, which is lower case.
        let host = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte);
        let whole = !authority.is_empty() && authority.bytes().all(host);
        if whole && ["http", "https"].contains(&scheme) { Ok(Self(text.to_owned())) } else { Err(refused()) }
    }
}

types::serde_as_text!(PublicUrl);

impl fmt::Display for PublicUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_an_origin() {
        let cases = [
            ("https://account.example.com", "https://account.example.com"),
            ("https://example.com:8443/", "https://example.com:8443"),
            ("http://[::1]:1885", "http://[::1]:1885"),
        ];
        for (text, origin) in cases {
            assert_eq!(text.parse::<PublicUrl>().unwrap().as_str(), origin);
        }
        let other = ["", "example.com", "ftp://a.b", "https://", "https://u@a.b", "https://a.b/?x", "https://A.b"];
        for text in other.into_iter().chain(["https://a.b/account", "https://a.b//"]) {
            let error = text.parse::<PublicUrl>().unwrap_err().to_string();
            assert!(error.contains("account.public_url") && error.contains("without a path"), "{text}: {error}");
        }
    }
}
