//! The changes that functions would make to stored uplinks, as a part of their page.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use api::rest::handler::{ChangedField, DecodeReport, NewFailure};
use serde_json::value::RawValue;

use super::examined::{counts, latest_of_each};
use crate::{
    functions::{
        comparison::{Comparison, PER_DEVICE},
        trial::Verdict,
    },
    site::page::{grouped, short, short_fields},
};

/// Maximum number of fields, and of reasons, that are shown, the most frequent first.
const SHOWN_MAX: usize = 50;

/// The changes as a page shows them.
pub(super) struct ComparisonView {
    pub(super) examined: u64,
    /// The uplinks that were compared, in words.
    pub(super) uplinks: String,
    pub(super) counts: Vec<(u64, Verdict)>,
    pub(super) fields: Vec<FieldRow>,
    pub(super) failures: Vec<FailureRow>,
    /// Says how many fields, and how many reasons, are shown, if that is not all of them.
    pub(super) fields_shown: Option<String>,
    pub(super) failures_shown: Option<String>,
    /// The reason why not all uplinks were compared; empty if they were.
    pub(super) cut_off: String,
    /// Files that the handler cannot read.
    pub(super) unreadable: BTreeSet<String>,
    /// Mean fuel of the live functions and of these; none without uplinks.
    pub(super) fuel: Option<(String, String)>,
}

/// A field that would change, with an example.
pub(super) struct FieldRow {
    pub(super) path: String,
    pub(super) count: u64,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) id: String,
    pub(super) dev_id: String,
}

/// A reason for which uplinks would fail that are decoded now.
pub(super) struct FailureRow {
    pub(super) reason: String,
    pub(super) failure: NewFailure,
}

impl ComparisonView {
    /// Shows what was found on the uplinks of a device, or of each device if `dev_id` is empty.
    pub(super) fn new(comparison: Comparison, dev_id: &str) -> Self {
        let Comparison { found, cut_off } = comparison;
        let mean = |fuel: u64| fuel.checked_div(found.examined).map(grouped);
        let fields_shown = shown_of(found.fields.len(), "changed fields");
        let failures_shown = shown_of(found.failures.len(), "reasons");
        Self {
            examined: found.examined,
            uplinks: latest_of_each(found.examined, PER_DEVICE, dev_id),
            counts: counts(&found.verdicts),
            fuel: mean(found.fuel_before).zip(mean(found.fuel_after)),
            fields: most(found.fields, |field| field.count).map(FieldRow::new).collect(),
            failures: failure_rows(found.failures),
            fields_shown,
            failures_shown,
            cut_off,
            unreadable: found.unreadable_files,
        }
    }
}

impl FieldRow {
    fn new((path, field): (String, ChangedField)) -> Self {
        let side =
            |value: Option<Box<RawValue>>| value.map_or_else(|| "–".to_owned(), |value| short_fields(value.get()));
        let ChangedField { count, example } = field;
        Self {
            path: short(&path),
            count,
            before: side(example.before),
            after: side(example.after),
            id: example.id,
            dev_id: example.dev_id,
        }
    }
}

/// The reasons of the most uplinks.
pub(super) fn failure_rows(failures: BTreeMap<String, NewFailure>) -> Vec<FailureRow> {
    let most = most(failures, |failure| failure.count);
    most.map(|(reason, failure)| FailureRow { reason: short(&reason), failure }).collect()
}

/// Says how many of all are shown; none if all are. The handler does not count what a report has no room for.
fn shown_of(all: usize, what: &str) -> Option<String> {
    let or_more = if all < DecodeReport::NAMED_OF_UPLINK_MAX { "" } else { " or more" };
    (all > SHOWN_MAX).then(|| format!("{SHOWN_MAX} of {all}{or_more} {what} are shown, those of the most uplinks."))
}

fn most<T>(
    entries: impl IntoIterator<Item = (String, T)>,
    count: impl Fn(&T) -> u64,
) -> impl Iterator<Item = (String, T)> {
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by_key(|(_, entry)| Reverse(count(entry)));
    entries.into_iter().take(SHOWN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_counted_as_far_as_the_handler_counts() {
        assert_eq!(shown_of(50, "reasons"), None);
        assert_eq!(shown_of(51, "reasons").unwrap(), "50 of 51 reasons are shown, those of the most uplinks.");
        assert!(shown_of(100, "changed fields").unwrap().starts_with("50 of 100 or more changed fields"));
        assert!(shown_of(DecodeReport::NAMED_MAX, "reasons").unwrap().starts_with("50 of 200 or more reasons"));
    }
}
