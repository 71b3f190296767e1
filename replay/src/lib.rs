#![doc = include_str!("../README.md")]

mod check;
mod codecs;
mod columns;
mod error;
mod message;
mod own;
mod report;
mod revisions;
mod run;
mod source;
mod stored;

pub use self::{
    check::Defaults,
    codecs::Codecs,
    columns::{ColumnNames, Encoding, Role},
    error::Error,
    message::{MessageError, parse_uplink},
    report::{Counts, Damage, Day, Example, Field, Place, Report, UpdateCounts},
    run::{Done, OutputFormat, OutputRow, ParquetOutput, Replay},
    source::{
        Batch, CsvFile, JsonLines, ParquetFile, PostgresSettings, RedisSettings, Rows, StoredUplinks, StreamEvents,
        Table, Updates, UplinkSource, is_postgres, is_redis, is_things_stack,
    },
    stored::{Correction, Filter, Name, RecordedUplink, StoredResult},
};
