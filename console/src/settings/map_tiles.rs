//! The server from which maps take tiles.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use types::is_line;
use url::{Host, Url};

/// Parts of the URL of a tile: its zoom level, its column and its row.
const PLACEHOLDERS: [&str; 3] = ["{z}", "{x}", "{y}"];
/// Maximum size of the URL of a tile, in bytes.
const URL_BYTES_MAX: usize = 1000;
/// Maximum length of the attribution, in characters.
const ATTRIBUTION_CHARS_MAX: usize = 500;
const URL: TileUrlError = TileUrlError(
    "must be a URL with http or https, without user, password and fragment, such as \
     https://tile.example.com/{z}/{x}/{y}.png",
);
const HOST: TileUrlError =
    TileUrlError("must have the name of one host, without a wildcard or a placeholder, or an address of IPv4");
const PATH: TileUrlError = TileUrlError("must have {z}, {x} and {y} behind the host, each once, and no other braces");

/// A server with tiles for maps. The browser of whoever opens a map asks it, so it sees their address, and which area
/// they look at.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MapTiles {
    /// The URL of a tile, such as `https://tile.example.com/{z}/{x}/{y}.png`: 256 pixels wide or more, in the projection
    /// of Web Mercator, numbered from the north-west. Zoom levels are at most 15.
    #[schemars(with = "String")]
    pub url: TileUrl,
    /// The attribution that the licence of the tiles asks for, such as `© OpenStreetMap contributors`. Maps show it.
    #[serde(deserialize_with = "attribution")]
    pub attribution: String,
}

/// The URL of a tile with its three placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileUrl {
    template: String,
    origin: String,
}

/// The rule that the URL of a tile breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TileUrlError(&'static str);

impl TileUrl {
    /// The URL of one tile.
    pub(crate) fn of(&self, zoom: u32, column: u32, row: u32) -> String {
        let values = [zoom, column, row].map(|value| value.to_string());
        let pairs = PLACEHOLDERS.into_iter().zip(values);
        pairs.fold(self.template.clone(), |url, (placeholder, value)| url.replace(placeholder, &value))
    }

    /// The scheme, host and port, as a content security policy has them.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }
}

impl FromStr for TileUrl {
    type Err = TileUrlError;

    fn from_str(text: &str) -> Result<Self, TileUrlError> {
        let is_plain = text.len() <= URL_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
        let url = Url::parse(text).ok().filter(|_| is_plain).ok_or(URL)?;
        let is_anonymous = url.username().is_empty() && url.password().is_none();
        if !matches!(url.scheme(), "http" | "https") || !is_anonymous || url.fragment().is_some() {
            return Err(URL);
        }
        // A policy has no address of IPv6, and characters such as `*`, `;` and `{` would have a meaning there, which URLs
        // do not give them.
        let is_one = match url.host() {
            Some(Host::Domain(name)) => name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte)),
            Some(Host::Ipv4(_)) => true,
            Some(Host::Ipv6(_)) | None => false,
        };
        if !is_one {
            return Err(HOST);
        }
        let braces = text.matches(['{', '}']).count();
        let is_whole = PLACEHOLDERS.iter().all(|placeholder| text.matches(placeholder).count() == 1);
        if !is_whole || braces != 2 * PLACEHOLDERS.len() {
            return Err(PATH);
        }
        Ok(Self { template: text.to_owned(), origin: url.origin().ascii_serialization() })
    }
}

impl fmt::Display for TileUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.template)
    }
}

types::serde_as_text!(TileUrl);

fn attribution<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() || !is_line(&text, 1..=ATTRIBUTION_CHARS_MAX) {
        return Err(D::Error::custom(
            "must be one line that says whose map it is, such as © OpenStreetMap contributors",
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_url_has_one_origin_and_a_place_for_each_number() {
        for (text, origin, tile) in [
            ("https://tile.example.com/{z}/{x}/{y}.png", "https://tile.example.com", "/3/4/2.png"),
            ("https://Tile.Example.com:443/a/{y}/{x}/{z}?key=b", "https://tile.example.com", "/a/2/4/3?key=b"),
            ("http://192.0.2.1:8080/?x={x}&y={y}&z={z}", "http://192.0.2.1:8080", "/?x=4&y=2&z=3"),
        ] {
            let url: TileUrl = text.parse().unwrap();
            assert_eq!(url.origin(), origin, "{text}");
            assert!(url.of(3, 4, 2).ends_with(tile), "{}", url.of(3, 4, 2));
            assert_eq!(url.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_url_of_tiles_is_refused() {
        for (text, error) in [
            ("", URL),
            ("tile.example.com/{z}/{x}/{y}.png", URL),
            ("ftp://tile.example.com/{z}/{x}/{y}.png", URL),
            ("data:image/png,{z}{x}{y}", URL),
            ("https://me@tile.example.com/{z}/{x}/{y}.png", URL),
            ("https://tile.example.com/{z}/{x}/#{y}.png", URL),
            ("https://tile.example.com/{z}/{x}/{y}.png; script-src *", URL),
            ("https://tile.example.com/{z}/{x}/{y}\n.png", URL),
            ("https://*.example.com/{z}/{x}/{y}.png", HOST),
            ("https://a;b.example.com/{z}/{x}/{y}.png", HOST),
            ("https://[2001:db8::1]/{z}/{x}/{y}.png", HOST),
            ("https://tile.example.com/{z}/{x}.png", PATH),
            ("https://tile.example.com/{z}/{x}/{y}/{x}.png", PATH),
            ("https://tile.example.com/{z}/{x}/{y}{r}.png", PATH),
        ] {
            assert_eq!(text.parse::<TileUrl>(), Err(error), "{text}");
        }
        assert!("https://{z}.example.com/{x}/{y}.png".parse::<TileUrl>().is_err());
        let long = format!("https://tile.example.com/{{z}}/{{x}}/{{y}}/{}", "a".repeat(URL_BYTES_MAX));
        assert_eq!(long.parse::<TileUrl>(), Err(URL));
    }

    #[test]
    fn both_are_needed_and_the_attribution_is_a_line() {
        let url = "https://tile.example.com/{z}/{x}/{y}.png";
        let read = |attribution: &str| {
            let read = serde_json::from_value::<MapTiles>(json!({ "url": url, "attribution": attribution }));
            read.map_err(|error| error.to_string())
        };
        assert_eq!(read("© Somebody").unwrap().attribution, "© Somebody");
        for wrong in ["", " ", "two\nlines", &"a".repeat(ATTRIBUTION_CHARS_MAX + 1)] {
            assert!(read(wrong).unwrap_err().contains("must be one line"), "{wrong:?}");
        }
        assert!(serde_json::from_value::<MapTiles>(json!({ "url": url })).is_err());
    }
}
