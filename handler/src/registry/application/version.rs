//! A version of an application's functions: its origin, its use, and the label that callers give it.

use runtime::{LimitsByName, SourcesHash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Timestamp;
use url::Url;

use super::{
    candidate::{Percentage, Tally},
    model::Application,
};
use crate::Error;

const NOTE_BYTES_MAX: usize = 500;
const LINK_BYTES_MAX: usize = 500;
/// Maximum of [`VersionBounds::count_max`]. Each of these versions may have functions of its own, and one commit, which
/// may make 1024 changes, may have to delete them all.
const VERSIONS_MAX: usize = 500;

/// Bounds on the versions of its functions that an application keeps. The oldest are dropped first; the one that is
/// live and the one that has a share of the devices stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VersionBounds {
    /// Maximum number of versions of an application, the live one included; more than 500 are not kept.
    pub count_max: usize,
    /// Maximum size of the functions of all its older versions together, in bytes. Equal functions count once.
    pub bytes_max: usize,
}

/// A version of the functions and the payload format of an application, without the functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionsVersion {
    /// 1, 2 and so on for each application.
    pub number: u32,
    /// Identifies its functions and their dialect.
    pub hash: SourcesHash,
    /// The payload format as it was set.
    pub payload_format: String,
    /// The size of its functions in the store, in bytes.
    pub bytes: usize,
    /// Origin of the version.
    #[serde(flatten)]
    pub origin: VersionOrigin,
    /// Set if it was abandoned automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<Abandonment>,
}

/// Time and reason of abandoning a version: it failed on more uplinks than the one that was live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abandonment {
    /// Time of abandoning it.
    pub time: Timestamp,
    /// The margin that was set.
    pub margin: Percentage,
    /// Its uplinks and failures.
    pub results: Tally,
    /// The version that was live, if it is known.
    pub live: Option<u32>,
    /// Uplinks and failures of that version.
    pub live_results: Tally,
}

/// A version with its functions.
#[derive(Clone, Debug)]
pub struct StoredVersion {
    /// Its number, and when and by whom it was set.
    pub version: FunctionsVersion,
    /// The application with the functions of that version, without its access key.
    pub application: Application,
    /// Devices that have it.
    pub used: VersionUse,
}

/// A version in the list of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// Its number, and when and by whom it was set.
    pub version: FunctionsVersion,
    /// Devices that have it.
    pub used: VersionUse,
}

/// Devices that have a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionUse {
    /// All that no candidate has.
    Live,
    /// It is the candidate, which this share of the devices has.
    Share(Percentage),
    /// None.
    Older,
}

/// Origin of a version, with the dialect and limits that its functions had then. Empty for functions that were set before
/// there were versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionOrigin {
    /// Time of creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Author, such as `user bob`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
    /// The version of which it is a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<u32>,
    /// Name of the dialect of the first function that it has, of decoder, converter, validator and encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Limits of its functions at that time; empty if it has no functions.
    #[serde(default, skip_serializing_if = "LimitsByName::is_empty")]
    pub limits: LimitsByName,
    /// Note and link that users attached to it.
    #[serde(default, skip_serializing_if = "VersionLabel::is_empty")]
    pub label: VersionLabel,
}

/// Note and link that users attached to a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionLabel {
    note: String,
    link: String,
}

impl VersionLabel {
    /// A label with a note on one line, and an `https` URL; either may be empty. [`Error::Invalid`] if they are not
    /// like that, or longer than 500 bytes.
    pub fn new(note: String, link: String) -> Result<Self, Error> {
        if note.len() > NOTE_BYTES_MAX || note.contains(char::is_control) {
            return Err(Error::invalid("Note", format_args!("one line of at most {NOTE_BYTES_MAX} bytes is allowed")));
        }
        let is_link = link.len() <= LINK_BYTES_MAX
            && link.bytes().all(|byte| byte.is_ascii_graphic())
            && Url::parse(&link).is_ok_and(|url| url.scheme() == "https" && url.has_host());
        if !link.is_empty() && !is_link {
            let rule = format_args!("it must be like https://example.com/changes/1, of at most {LINK_BYTES_MAX} bytes");
            return Err(Error::invalid("Link", rule));
        }
        Ok(Self { note, link })
    }

    /// Returns the label with missing parts filled in from another.
    pub(super) fn or(self, other: &Self) -> Self {
        let or = |own: String, other: &String| if own.is_empty() { other.clone() } else { own };
        Self { note: or(self.note, &other.note), link: or(self.link, &other.link) }
    }

    /// Returns true if there is neither a note nor a link.
    pub fn is_empty(&self) -> bool {
        self.note.is_empty() && self.link.is_empty()
    }

    pub(crate) fn note(&self) -> &str {
        &self.note
    }

    pub(crate) fn link(&self) -> &str {
        &self.link
    }
}

impl VersionBounds {
    pub(super) fn count_max(self) -> usize {
        self.count_max.clamp(1, VERSIONS_MAX)
    }

    /// The same bounds, but only what devices use is kept.
    pub(super) fn without_older(self) -> Self {
        Self { count_max: 1, ..self }
    }
}

impl Default for VersionBounds {
    fn default() -> Self {
        Self { count_max: 100, bytes_max: 2 << 20 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_line_and_a_safe_link() {
        let label = |note: &str, link: &str| VersionLabel::new(note.to_owned(), link.to_owned());
        for (note, link) in [("", ""), ("fixes the battery ☂", ""), ("", "https://example.com/changes?id=1#top")] {
            assert_eq!((label(note, link).unwrap().note(), label(note, link).unwrap().link()), (note, link));
        }
        let long = format!("https://example.com/{}", "a".repeat(500));
        for link in ["http://example.com", "javascript:alert(1)", "https://", "https://example.com/ a", &long] {
            assert!(label("", link).unwrap_err().to_string().contains("Link not valid"), "{link}");
        }
        for note in ["two\nlines", "\u{1b}[31m", &"a".repeat(501)] {
            assert!(label(note, "").unwrap_err().to_string().contains("Note not valid"), "{note:?}");
        }
    }
}
