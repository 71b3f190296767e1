//! Uplinks as history has them: what was received, and the newest of their corrections.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    mem,
    path::Path,
};

use futures::TryStreamExt;
use history::{History, Query, Record, RecordId, Revisions, Skipped, Unchecked};

use super::seed;
use crate::{Error, payload::Payload};

/// Maximum number of unreadable files, and of those without checksums, that are named.
const NAMED_FILES_MAX: usize = 200;
/// Maximum number of them that one line names.
const LINE_NAMES_MAX: usize = 8;

/// Restores the input of the functions for an uplink. Metadata is left out, as functions do not see it.
pub(crate) fn payload(record: &Record) -> Payload {
    Payload {
        bytes: (record.port > 0).then(|| record.payload.clone()),
        port: record.port,
        f_cnt: record.counter,
        confirmed: record.confirmed,
        is_retry: record.is_retry,
        received: record.received,
        seed: record.seed.unwrap_or_else(|| seed(&record.app_id, &record.dev_id, record.counter)),
        metadata: types::Metadata::default(),
        extra: record.extra.clone(),
        warnings: Vec::new(),
    }
}

/// The payload with what is known of how it was received.
pub(crate) fn whole_payload(record: &Record) -> Payload {
    Payload { metadata: serde_json::from_str(&record.metadata).unwrap_or_default(), ..payload(record) }
}

/// An uplink, and the newest correction of it if there is one.
pub(crate) type StoredUplink = (Record, Option<Record>);

/// Pairs what a query has found with its newest corrections.
pub(crate) async fn with_corrections(
    history: &History,
    query: &Query,
    records: Vec<Record>,
    unreadable: &mut UnreadableFiles,
) -> Result<Vec<StoredUplink>, Error> {
    let ids = records.iter().map(|record| record.id);
    let (Some(first), Some(last)) = (ids.clone().min(), ids.clone().max()) else { return Ok(Vec::new()) };
    let query = Query {
        dev_id: query.dev_id.clone(),
        revisions: Revisions::CorrectionsOf(first..=last),
        bytes_max: query.bytes_max,
        ..Query::of(query.app_id.clone())
    };
    let wanted: HashSet<_> = ids.collect();
    let mut newest = BTreeMap::<RecordId, Record>::new();
    let mut pages = Box::pin(history.batches(query));
    while let Some(page) = pages.try_next().await? {
        unreadable.add(&page.skipped);
        for record in page.records {
            let Some(id) = record.corrects.filter(|id| wanted.contains(id)) else { continue };
            if newest.get(&id).is_none_or(|other| other.revision < record.revision) {
                newest.insert(id, record);
            }
        }
    }
    let with_newest = |record: Record| {
        let newest = newest.remove(&record.id);
        (record, newest)
    };
    Ok(records.into_iter().map(with_newest).collect())
}

/// Names of files of history that could not be read, whose records are missing: at most 200.
#[derive(Debug, Default)]
pub(crate) struct UnreadableFiles {
    names: BTreeSet<String>,
    new: Vec<String>,
}

impl UnreadableFiles {
    pub(crate) fn add(&mut self, skipped: &[Skipped]) {
        for skipped in skipped.iter().filter(|skipped| !skipped.is_foreign) {
            let name = file_name(&skipped.path);
            if self.names.len() < NAMED_FILES_MAX && self.names.insert(name.clone()) {
                self.new.push(name);
            }
        }
    }

    /// Takes those that were not taken before.
    pub(crate) fn take_new(&mut self) -> Vec<String> {
        mem::take(&mut self.new)
    }
}

/// Names of files of history without checksums, each with the number of such rows: at most 200.
#[derive(Debug, Default)]
pub(crate) struct UncheckedFiles {
    names: BTreeSet<String>,
    new: BTreeMap<String, u64>,
}

impl UncheckedFiles {
    pub(crate) fn add(&mut self, files: &[Unchecked]) {
        for Unchecked { path, rows } in files {
            let name = file_name(path);
            if self.names.len() < NAMED_FILES_MAX && self.names.insert(name.clone()) {
                self.new.insert(name, *rows);
            }
        }
    }

    /// Takes those that were not taken before.
    pub(crate) fn take_new(&mut self) -> BTreeMap<String, u64> {
        mem::take(&mut self.new)
    }
}

/// Returns a line with the names of unreadable files: at most 8, and how many more there are. Other programs may have
/// chosen them.
pub(crate) fn file_names(files: &[Skipped]) -> String {
    let named = files.iter().take(LINE_NAMES_MAX).map(|skipped| file_name(&skipped.path));
    let more = files.len().saturating_sub(LINE_NAMES_MAX);
    let more = (more > 0).then(|| format!("{more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ").escape_default().to_string()
}

/// Returns the name of a file of history. The operator's directories are of no use to clients.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
