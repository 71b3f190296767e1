//! Revisions of our own records: of an uplink and its corrections, only the newest counts.
//!
//! Exports have the newest records first, so a correction is known before what it corrects is read.

use std::collections::HashMap;

use history::RecordId;
use memchr::memmem;
use parking_lot::RwLock;
use serde::Deserialize;

use crate::{Error, RecordedUplink, stored::Correction};

/// Maximum number of corrected uplinks, which take about 100 MB.
pub(crate) const CORRECTED_MAX: usize = 2_000_000;

/// The newest revision of each uplink that was corrected.
#[derive(Debug, Default)]
pub(crate) struct Revisions(RwLock<HashMap<RecordId, u32>>);

/// Too many uplinks were corrected.
pub(crate) fn too_many() -> Error {
    let reason = format!("more than {CORRECTED_MAX} uplinks in it were corrected: use `airlock history decode`");
    Error::Invalid(reason)
}

impl Revisions {
    /// Adds corrections, in any order.
    pub(crate) fn add(&self, corrections: &[Correction]) -> Result<(), Error> {
        if corrections.is_empty() {
            return Ok(());
        }
        let mut newest = self.0.write();
        for Correction { original, revision } in corrections {
            let known = newest.entry(*original).or_default();
            *known = (*known).max(*revision);
        }
        if newest.len() > CORRECTED_MAX { Err(too_many()) } else { Ok(()) }
    }

    /// Returns true if a newer revision of this uplink is known.
    pub(crate) fn is_outdated(&self, uplink: &RecordedUplink) -> bool {
        let newest = self.0.read();
        if newest.is_empty() {
            return false;
        }
        let (original, revision) = match uplink.correction {
            Some(Correction { original, revision }) => (Some(original), revision),
            None => (uplink.id.parse().ok(), 0),
        };
        original.and_then(|original| newest.get(&original)).is_some_and(|newest| *newest > revision)
    }
}

#[derive(Deserialize)]
struct Corrects {
    corrects: RecordId,
    revision: u32,
}

/// The corrections in lines of JSON, of which few have any.
pub(crate) fn in_lines(text: &[u8]) -> Vec<Correction> {
    let (mut corrections, mut end) = (Vec::new(), 0);
    for place in memmem::find_iter(text, b"\"corrects\"") {
        if place < end {
            continue;
        }
        let start = memchr::memrchr(b'\n', &text[..place]).map_or(0, |newline| newline + 1);
        end = memchr::memchr(b'\n', &text[place..]).map_or(text.len(), |length| place + length);
        let line = text[start..end].trim_ascii();
        let line = line.strip_suffix(b",").unwrap_or(line);
        if let Ok(Corrects { corrects: original, revision }) = serde_json::from_slice(line) {
            corrections.push(Correction { original, revision });
        }
    }
    corrections
}
