#![doc = include_str!("../README.md")]

mod check;
mod codecs;
mod columns;
mod csv;
mod error;
mod lines;
mod message;
mod own;
mod parquet;
mod postgres;
mod redis;
mod report;
mod revisions;
mod run;
mod source;
mod stored;
mod things_stack;

pub use self::{
    check::Defaults,
    codecs::Codecs,
    columns::{ColumnNames, Encoding, Role},
    csv::CsvFile,
    error::Error,
    lines::JsonLines,
    message::{MessageError, parse_uplink},
    parquet::{OutputRow, ParquetFile, ParquetOutput},
    postgres::{PostgresSettings, Rows, Table, is_postgres, updates::Updates},
    redis::{RedisSettings, StreamEvents, is_redis},
    report::{Counts, Damage, Day, Example, Field, Place, Report, UpdateCounts},
    run::{Done, OutputFormat, Replay},
    source::{Batch, Source},
    stored::{Correction, Filter, Found, Name, Stored},
    things_stack::{StoredUplinks, is_things_stack},
};
