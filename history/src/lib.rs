#![doc = include_str!("../README.md")]

mod bucket;
mod chart;
mod directory;
mod error;
mod history;
mod keeper;
mod query;
mod reader;
mod record;
mod sealed;
mod settings;
mod tail;

#[doc(hidden)]
pub use self::sealed::{checksums::with_checksums, file::column_bytes};
pub use self::{
    chart::{CHART_POINTS_MAX, Chart, ChartField, ChartPoint, ChartQuery},
    error::Error,
    history::{Environment, History, NewDirectory, OwnerOf, StoredHistory, read_files},
    query::{FieldFilter, FieldFilterError, LIMIT_MAX, LastHeard, Page, Query, Revisions, Skipped, Unchecked},
    reader::export::{ExportPart, Format, FormatError},
    record::loss::{Loss, Losses},
    record::{
        Kind, NewRecord, Outcome, RECORD_BYTES_MAX, Record, RecordId, RecordIdError, logs_text, microseconds,
        usual_seed, warnings_text,
    },
    sealed::chunk::{Chunks, Following},
    settings::{ApplicationSettings, Settings, bucket::BucketSettings},
};
