//! Paths of this site that a login may redirect to.

use std::{fmt, str::FromStr};

use crate::{Error, Result};

/// Fits an authorization request with the longest `state`, percent-encoded twice.
const BYTES_MAX: usize = 40 * 1024;

/// A path and query that cannot redirect to another site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalPath(String);

impl LocalPath {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LocalPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // Browsers treat a backslash as a slash, and two leading slashes as the start of another site's address.
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if text.starts_with('/') && !text.starts_with("//") && plain && text.len() <= BYTES_MAX {
            Ok(Self(text.to_owned()))
        } else {
            Err(Error::Invalid { what: "next", must: "must be a path of this site" })
        }
    }
}

impl fmt::Display for LocalPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_paths_that_stay_on_this_site() {
        for path in ["/", "/users/authorize?client_id=a&state=%2F%2Fevil.example", "/%2f%2fevil.example"] {
            assert_eq!(path.parse::<LocalPath>().unwrap().as_str(), path);
        }
        let evil = [
            "",
            "users",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/a\\..\\b",
            "https://evil.example",
            "javascript:alert(1)",
            " /users",
            "/\t/evil.example",
            "/a\r\nLocation: //evil.example",
        ];
        for text in evil {
            assert!(text.parse::<LocalPath>().is_err(), "{text:?}");
        }
    }
}
