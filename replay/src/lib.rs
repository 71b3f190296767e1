#![doc = include_str!("../README.md")]

mod check;
mod columns;
mod csv;
mod error;
mod lines;
mod message;
mod postgres;
mod report;
mod run;
mod source;
mod stored;

pub use self::{
    columns::{ColumnNames, Encoding, Role},
    csv::CsvFile,
    error::Error,
    lines::JsonLines,
    message::{MessageError, parse_uplink},
    postgres::{PostgresSettings, Rows, Table, is_postgres, updates::Updates},
    report::{Counts, Damage, Day, Example, Field, Place, Report, UpdateCounts},
    run::{Done, Replay},
    source::{Batch, Source},
    stored::{Filter, Name, Stored},
};
