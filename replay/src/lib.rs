#![doc = include_str!("../README.md")]

mod check;
mod columns;
mod csv;
mod error;
mod lines;
mod message;
mod parquet;
mod postgres;
mod report;
mod run;
mod source;
mod stored;
mod things_stack;

pub use self::{
    columns::{ColumnNames, Encoding, Role},
    csv::CsvFile,
    error::Error,
    lines::JsonLines,
    message::{MessageError, parse_uplink},
    parquet::ParquetFile,
    postgres::{PostgresSettings, Rows, Table, is_postgres, updates::Updates},
    report::{Counts, Damage, Day, Example, Field, Place, Report, UpdateCounts},
    run::{Done, Replay},
    source::{Batch, Source},
    stored::{Filter, Found, Name, Stored},
    things_stack::{StoredUplinks, is_things_stack},
};
