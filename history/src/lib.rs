#![doc = include_str!("../README.md")]

mod bounds;
mod directory;
mod disk;
mod error;
mod export;
mod history;
mod keeper;
mod kept;
mod moment;
mod query;
mod reader;
mod record;
mod removed;
mod sealed;
mod settings;
mod tail;
mod turns;
mod usage;

#[doc(hidden)]
pub use self::sealed::file::column_bytes;
pub use self::{
    error::Error,
    export::{Format, FormatError},
    history::History,
    kept::{Kept, Loss, Losses},
    query::{FieldFilter, FieldFilterError, LIMIT_MAX, Page, Query, Skipped},
    record::{Kind, NewRecord, Outcome, RECORD_BYTES_MAX, Record, RecordId, RecordIdError},
    settings::{ApplicationSettings, Settings},
    usage::Usage,
};
