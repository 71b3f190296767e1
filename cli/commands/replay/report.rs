//! The findings of a replay, as JSON, as text and as a page.

pub(super) mod html;
pub(super) mod text;

use replay::{Counts, Example, Field, Report};
use serde::Serialize;
use types::Timestamp;

use super::codecs::Codec;
use crate::html::Part;

/// Source, codecs and findings of a replay. It serializes to JSON for programs.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    /// The source, without a password.
    pub(super) source: &'a str,
    /// The codecs that ran.
    pub(super) codecs: Vec<Codec>,
    /// Start of the replay.
    pub(super) started: Timestamp,
    /// End of the replay.
    pub(super) ended: Timestamp,
    /// The findings.
    #[serde(flatten)]
    pub(super) report: Report,
}

/// Counts with their names, in the order in which they are shown.
fn named(counts: &Counts) -> [Part; 5] {
    [
        ("equal", "equal", counts.equal),
        ("changed", "changed", counts.changed),
        ("failing", "newly failing", counts.newly_failing),
        ("decoded", "newly decoded", counts.newly_decoded),
        ("other", "still failing", counts.still_failing),
    ]
}

/// Fields or failures, the most frequent first.
fn by_frequency<'a>(fields: impl IntoIterator<Item = (&'a String, &'a Field)>) -> Vec<(&'a str, &'a Field)> {
    let name = |name: &'a String| if name.is_empty() { "the whole object" } else { name };
    let mut fields: Vec<_> = fields.into_iter().map(|(field, count)| (name(field), count)).collect();
    fields.sort_by_key(|(_, field)| std::cmp::Reverse(field.uplinks));
    fields
}

/// Describes the uplink of an example, as in `line 7, device my-device, port 1, payload 01af`.
fn place(example: &Example) -> String {
    let mut text = example.place.to_string();
    if !example.device.is_empty() {
        text.push_str(&format!(", device {}", example.device));
    }
    if let Some(time) = example.time {
        text.push_str(&format!(", {time}"));
    }
    text + &format!(", port {}, payload {}", example.port, example.payload)
}

/// One side of a difference.
fn side(value: Option<&String>) -> &str {
    value.map_or("nothing", String::as_str)
}
