//! Records as lines of CSV. The first line has the names that the columns of Parquet files have, and the id.

use std::io;

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::Record;

const COLUMNS: [&str; 27] = [
    "id",
    "recorded",
    "received",
    "app_id",
    "dev_id",
    "kind",
    "port",
    "counter",
    "confirmed",
    "is_retry",
    "payload",
    "metadata",
    "extra",
    "seed",
    "functions",
    "version",
    "limits",
    "outcome",
    "result",
    "normalized",
    "failure",
    "logs",
    "warnings",
    "fuel",
    "revision",
    "corrects",
    "microseconds",
];

/// Writes the names of the columns before the first record.
#[derive(Debug, Default)]
pub(super) struct CsvWriter {
    has_names: bool,
}

impl CsvWriter {
    pub(super) fn write(&mut self, records: &[Record]) -> io::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        if !self.has_names {
            writer.write_record(COLUMNS)?;
            self.has_names = true;
        }
        records.iter().try_for_each(|record| writer.write_record(values(record)))?;
        writer.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

fn values(record: &Record) -> [String; COLUMNS.len()] {
    let optional = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    [
        record.id.to_string(),
        record.id.recorded().to_rfc3339_millis(),
        record.received.to_rfc3339(),
        record.app_id.to_string(),
        record.dev_id.to_string(),
        record.kind.to_string(),
        record.port.to_string(),
        record.counter.to_string(),
        record.confirmed.to_string(),
        record.is_retry.to_string(),
        STANDARD.encode(&record.payload),
        record.metadata.clone(),
        record.extra.clone(),
        optional(record.seed),
        record.functions.map(hex::encode).unwrap_or_default(),
        optional(record.version.map(u64::from)),
        record.limits.map(hex::encode).unwrap_or_default(),
        record.outcome.as_str().to_owned(),
        record.result.clone(),
        record.normalized.clone(),
        record.failure.clone().unwrap_or_default(),
        record.logs.clone(),
        record.warnings.clone(),
        record.fuel.to_string(),
        record.revision.to_string(),
        record.corrects.map(|id| id.to_string()).unwrap_or_default(),
        optional(record.microseconds.map(u64::from)),
    ]
}
