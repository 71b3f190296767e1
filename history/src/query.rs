//! Queries of history.

mod best;
mod field_filter;
mod field_scan;
mod filter;
mod heard;
mod json_path;
mod shared;

use std::{io, ops::RangeInclusive, path::PathBuf, time::Duration};

use types::{AppId, DevId, Timestamp};

pub(crate) use self::{
    best::{Best, BestRecords},
    filter::Filter,
    heard::Heard,
    shared::Shared,
};
pub use self::{
    field_filter::{FieldFilter, FieldFilterError},
    heard::LastHeard,
};
use crate::{Error, Kind, Record, RecordId};

/// Maximum number of records of a page.
pub const LIMIT_MAX: usize = 1000;
/// Default number of records of a page.
const LIMIT: usize = 50;
/// Default size of a page in bytes.
const PAGE_BYTES_MAX: usize = 32 << 20;
/// Maximum difference between the clocks of handlers.
pub(crate) const CLOCKS_APART_MAX: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of corrections of a record that are listed, and their size in bytes.
const CORRECTIONS_MAX: usize = 10;
const CORRECTIONS_BYTES_MAX: usize = 2 << 20;

/// Selects records of one application. Conditions that are none select all.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The application.
    pub app_id: AppId,
    /// The device.
    pub dev_id: Option<DevId>,
    /// Recorded at this time or later.
    pub since: Option<Timestamp>,
    /// Recorded before this time.
    pub until: Option<Timestamp>,
    /// The LoRaWAN port.
    pub port: Option<u8>,
    /// The kind of message.
    pub kind: Option<Kind>,
    /// No events of devices that were created, changed or deleted.
    pub without_changes: bool,
    /// Only records whose functions failed or returned an invalid result, and downlinks and joins that failed.
    pub failed_only: bool,
    /// A text in the result, the failure, the logs or the warnings, as JSON has it; upper and lower case differ.
    pub text: Option<String>,
    /// The value of a field.
    pub field: Option<FieldFilter>,
    /// The number of the version of the functions that ran.
    pub version: Option<u32>,
    /// Originals, corrections or both.
    pub revisions: Revisions,
    /// Number of records of a page, at most [`LIMIT_MAX`].
    pub limit: usize,
    /// Maximum size of a page in bytes, unless it is one record.
    pub bytes_max: usize,
    /// Only records with lower ids: the `next` of the page before, when newest come first.
    pub before: Option<RecordId>,
    /// Only records with higher ids: the `next` of the page before, when oldest come first.
    pub after: Option<RecordId>,
    /// Oldest first rather than newest first.
    pub oldest_first: bool,
}

/// Selects originals or corrections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Revisions {
    /// Originals and corrections.
    #[default]
    All,
    /// Only original records.
    Originals,
    /// Only corrections of the records with these ids.
    CorrectionsOf(RangeInclusive<RecordId>),
}

/// Records, in the order that was asked for.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// Start of the next page; none if this is the last.
    pub next: Option<RecordId>,
    /// Files that could not be read.
    pub skipped: Vec<Skipped>,
    /// Files without checksums among those that were read.
    pub unchecked: Vec<Unchecked>,
}

/// A file in which changed bytes may stay unnoticed: it has no checksums, or has copied rows of one that had none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unchecked {
    /// The file.
    pub path: PathBuf,
    /// Number of its rows without checksums, or more: nothing says which of them were removed.
    pub rows: u64,
}

/// A file that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// For people.
    pub reason: String,
    /// True if its name says that no handler wrote it, so that it has no records: none is missing without it.
    pub is_foreign: bool,
}

impl Skipped {
    /// A file, or a bucket, that may have records.
    pub(crate) fn unread(path: PathBuf, reason: String) -> Self {
        Self { path, reason, is_foreign: false }
    }

    /// Names the file that an error is of. Any other error is returned, and so is that of a file that is gone: what it
    /// had is elsewhere.
    pub(crate) fn of(error: Error) -> Result<Self, Error> {
        match error {
            Error::Damaged { path, source } => Ok(Self::unread(path, source.to_string())),
            Error::File { path, source, .. } if source.kind() != io::ErrorKind::NotFound => {
                Ok(Self::unread(path, source.to_string()))
            }
            error => Err(error),
        }
    }
}

impl Query {
    /// The record with this id, and no other.
    pub fn only(app_id: AppId, id: RecordId) -> Self {
        let after = Some(id.previous()).filter(|_| id > RecordId::first(0));
        Self { after, before: Some(id.next()), limit: 1, ..Self::of(app_id) }
    }

    /// The newest corrections of a record.
    pub(crate) fn corrections_of(record: &Record) -> Self {
        Self {
            dev_id: Some(record.dev_id.clone()),
            // They came later, if perhaps by the clock of another handler: older files need not be opened.
            since: Some(record.id.recorded().minus(CLOCKS_APART_MAX)),
            revisions: Revisions::CorrectionsOf(record.id..=record.id),
            limit: CORRECTIONS_MAX,
            bytes_max: CORRECTIONS_BYTES_MAX,
            ..Self::of(record.app_id.clone())
        }
    }

    /// All uplinks of an application, without corrections, which are recorded later.
    pub(crate) fn uplinks_of(app_id: AppId) -> Self {
        Self { kind: Some(Kind::Uplink), revisions: Revisions::Originals, ..Self::of(app_id) }
    }

    /// All records of an application, newest first.
    pub fn of(app_id: AppId) -> Self {
        Self {
            app_id,
            dev_id: None,
            since: None,
            until: None,
            port: None,
            kind: None,
            without_changes: false,
            failed_only: false,
            text: None,
            field: None,
            version: None,
            revisions: Revisions::All,
            limit: LIMIT,
            bytes_max: PAGE_BYTES_MAX,
            before: None,
            after: None,
            oldest_first: false,
        }
    }
}
