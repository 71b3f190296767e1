//! The changes that functions would make to stored uplinks, as a part of their page.

use std::{cmp::Reverse, collections::BTreeSet};

use api::rest::handler::{ChangedField, NewFailure};
use serde_json::value::RawValue;

use crate::{
    functions::comparison::{Comparison, PER_DEVICE},
    site::page::short,
};

/// Maximum number of fields, and of reasons, that are shown, the most frequent first.
const SHOWN_MAX: usize = 50;

/// The changes as a page shows them.
pub(super) struct ComparisonView {
    pub(super) examined: u64,
    pub(super) per_device: u32,
    /// Counts that are not zero, with their names.
    pub(super) counts: Vec<(u64, &'static str)>,
    pub(super) fields: Vec<FieldRow>,
    pub(super) failures: Vec<FailureRow>,
    /// The reason why not all uplinks were compared; empty if they were.
    pub(super) cut_off: String,
    /// Files that the handler cannot read.
    pub(super) unreadable: BTreeSet<String>,
    /// Mean fuel of the live functions and of these; none without uplinks.
    pub(super) fuel: Option<(u64, u64)>,
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
    pub(super) fn new(comparison: Comparison) -> Self {
        let Comparison { found, cut_off } = comparison;
        let counts = [
            (found.verdicts.newly_failing, "newly failing"),
            (found.verdicts.changed, "changed"),
            (found.verdicts.newly_decoded, "newly decoded"),
            (found.verdicts.still_failing, "still failing"),
            (found.verdicts.equal, "equal"),
        ];
        let mean = |fuel: u64| fuel.checked_div(found.examined);
        Self {
            examined: found.examined,
            per_device: PER_DEVICE,
            counts: counts.into_iter().filter(|(count, _)| *count > 0).collect(),
            fuel: mean(found.fuel_before).zip(mean(found.fuel_after)),
            fields: most(found.fields, |field| field.count).map(FieldRow::new).collect(),
            failures: most(found.failures, |failure| failure.count)
                .map(|(reason, failure)| FailureRow { reason: short(&reason), failure })
                .collect(),
            cut_off,
            unreadable: found.unreadable_files,
        }
    }
}

impl FieldRow {
    fn new((path, field): (String, ChangedField)) -> Self {
        let side = |value: Option<Box<RawValue>>| value.map_or_else(|| "–".to_owned(), |value| short(value.get()));
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

fn most<T>(
    entries: impl IntoIterator<Item = (String, T)>,
    count: impl Fn(&T) -> u64,
) -> impl Iterator<Item = (String, T)> {
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by_key(|(_, entry)| Reverse(count(entry)));
    entries.into_iter().take(SHOWN_MAX)
}
