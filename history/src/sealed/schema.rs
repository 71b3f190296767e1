//! The columns of a file, and how each is encoded.

use std::sync::Arc;

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    errors::Result,
    file::properties::{EnabledStatistics, WriterProperties},
    schema::{
        parser::parse_message_type,
        types::{ColumnPath, SchemaDescriptor, TypePtr},
    },
};

/// Number of rows of a page. A search for a few records reads one page of each column.
pub(crate) const PAGE_ROWS: usize = 2048;

const MESSAGE: &str = "
message history {
    REQUIRED INT64 recorded (TIMESTAMP(MILLIS, true));
    REQUIRED INT32 writer (INTEGER(32, false));
    REQUIRED INT32 number (INTEGER(32, false));
    REQUIRED INT64 received (TIMESTAMP(MILLIS, true));
    OPTIONAL INT32 received_nanos;
    REQUIRED BYTE_ARRAY app_id (UTF8);
    REQUIRED BYTE_ARRAY dev_id (UTF8);
    REQUIRED BYTE_ARRAY kind (UTF8);
    REQUIRED INT32 port (INTEGER(8, false));
    REQUIRED INT32 counter (INTEGER(32, false));
    REQUIRED BOOLEAN confirmed;
    REQUIRED BOOLEAN is_retry;
    REQUIRED BYTE_ARRAY payload;
    OPTIONAL BYTE_ARRAY metadata (JSON);
    OPTIONAL BYTE_ARRAY extra (JSON);
    OPTIONAL INT64 seed (INTEGER(64, false));
    OPTIONAL BYTE_ARRAY functions;
    OPTIONAL INT32 version (INTEGER(32, false));
    OPTIONAL BYTE_ARRAY limits;
    REQUIRED BYTE_ARRAY outcome (UTF8);
    OPTIONAL BYTE_ARRAY result (JSON);
    OPTIONAL BYTE_ARRAY normalized (JSON);
    OPTIONAL BYTE_ARRAY failure (UTF8);
    OPTIONAL BYTE_ARRAY logs (JSON);
    OPTIONAL BYTE_ARRAY warnings (JSON);
    REQUIRED INT64 fuel (INTEGER(64, false));
    REQUIRED INT32 revision (INTEGER(32, false));
    OPTIONAL BYTE_ARRAY corrects (UTF8);
}";

/// A column, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Recorded,
    Writer,
    Number,
    Received,
    ReceivedNanos,
    AppId,
    DevId,
    Kind,
    Port,
    Counter,
    Confirmed,
    IsRetry,
    Payload,
    Metadata,
    Extra,
    Seed,
    Functions,
    Version,
    Limits,
    Outcome,
    Result,
    Normalized,
    Failure,
    Logs,
    Warnings,
    Fuel,
    Revision,
    Corrects,
}

/// Columns of numbers that differ little from row to row.
const DELTAS: [&str; 5] = ["recorded", "number", "received", "counter", "fuel"];
/// Columns with few different values.
const DICTIONARIES: [&str; 11] =
    ["writer", "app_id", "dev_id", "kind", "port", "functions", "version", "limits", "outcome", "revision", "corrects"];
/// Columns of texts and bytes.
const TEXTS: [&str; 8] = ["payload", "metadata", "extra", "result", "normalized", "failure", "logs", "warnings"];
/// Columns whose values are much alike, and which no query searches row by row: LZ4 is read faster, but takes twice the
/// room for them.
const ZSTD: [&str; 3] = ["dev_id", "metadata", "extra"];
/// Number of rows from which that pays for the tables that zstd begins with.
const ZSTD_ROWS_MIN: usize = 512;
/// Columns of one bit.
const BITS: [&str; 2] = ["confirmed", "is_retry"];

/// Returns true if a file has these columns.
pub(crate) fn is_ours(schema: &SchemaDescriptor) -> bool {
    let ours = MESSAGE.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let theirs = schema.columns().iter().map(|column| {
        let presence = if column.max_def_level() > 0 { "OPTIONAL" } else { "REQUIRED" };
        format!("{presence} {} {}", column.physical_type(), column.name())
    });
    // What follows is how others should show it.
    let same = |ours: &str, theirs: &str| ours.split(" (").next() == Some(theirs);
    schema.num_columns() == ours.clone().count() && ours.zip(theirs).all(|(ours, theirs)| same(ours, &theirs))
}

pub(crate) fn schema() -> Result<TypePtr> {
    parse_message_type(MESSAGE).map(Arc::new)
}

/// Returns the properties for writing a file of so many rows: `devices` is the number that the device filter should have
/// room for.
pub(crate) fn properties(devices: u64, rows: usize) -> WriterProperties {
    let path = |name: &str| ColumnPath::from(name);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("airlock ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_bloom_filter_for_dictionary_encoded_chunks(true)
        .set_column_statistics_enabled(path("recorded"), EnabledStatistics::Chunk)
        .set_column_statistics_enabled(path("corrects"), EnabledStatistics::Chunk)
        .set_column_statistics_enabled(path("dev_id"), EnabledStatistics::Page)
        .set_column_bloom_filter_enabled(path("dev_id"), true)
        .set_column_bloom_filter_max_ndv(path("dev_id"), devices.max(1));
    for name in DELTAS {
        builder = builder.set_column_encoding(path(name), Encoding::DELTA_BINARY_PACKED);
    }
    for name in DICTIONARIES {
        builder = builder.set_column_dictionary_enabled(path(name), true);
    }
    for name in BITS {
        builder = builder.set_column_encoding(path(name), Encoding::RLE);
    }
    for name in TEXTS {
        // The texts without their lengths between them are compressed and searched faster.
        builder = builder.set_column_encoding(path(name), Encoding::DELTA_LENGTH_BYTE_ARRAY);
        builder = builder.set_column_compression(path(name), Compression::LZ4_RAW);
    }
    let zstd = ZSTD.iter().filter(|_| rows >= ZSTD_ROWS_MIN);
    for name in zstd {
        builder = builder.set_column_compression(path(name), Compression::ZSTD(ZstdLevel::default()));
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_this_schema_are_recognized_and_others_are_not() {
        assert!(is_ours(&SchemaDescriptor::new(schema().unwrap())));
        for (from, to) in [("INT64 fuel", "INT32 fuel"), ("OPTIONAL INT32 version", "REQUIRED INT32 version")] {
            let other = MESSAGE.replacen(from, to, 1).replace(" fuel (INTEGER(64, false))", " fuel");
            assert!(!is_ours(&SchemaDescriptor::new(Arc::new(parse_message_type(&other).unwrap()))), "{to}");
        }
        let fewer = "message history { REQUIRED INT64 recorded; }";
        assert!(!is_ours(&SchemaDescriptor::new(Arc::new(parse_message_type(fewer).unwrap()))));
    }

    #[test]
    fn every_column_has_one_encoding_and_its_place() {
        let schema = schema().unwrap();
        let names: Vec<_> = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
        for name in DELTAS.iter().chain(&DICTIONARIES).chain(&TEXTS).chain(&BITS).chain(&ZSTD) {
            assert!(names.contains(&(*name).to_owned()), "{name}");
        }
        assert_eq!(names[Column::Recorded as usize], "recorded");
        assert_eq!(names[Column::Result as usize], "result");
        assert_eq!(names[Column::Corrects as usize], "corrects");
    }
}
