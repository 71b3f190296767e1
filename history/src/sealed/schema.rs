//! The columns of a file, and how each is encoded.

use std::sync::Arc;

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    errors::Result,
    file::properties::{DeltaBinaryPackedEncoderOptions, EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
    schema::{
        parser::parse_message_type,
        types::{ColumnDescriptor, ColumnPath, SchemaDescriptor, TypePtr},
    },
};

/// Number of rows of a page. A search for a few records reads one page of each column.
pub(crate) const PAGE_ROWS: usize = 2048;

/// Number of rows sorted and written together. More would need more memory, fewer more reading for each device.
pub(crate) const GROUP_ROWS: usize = 1 << 17;
/// Number of gateways of that many rows from which metadata stays whole: a reader has their columns in memory.
pub(crate) const GATEWAYS_MAX: usize = 1 << 20;

/// Key of the number of rows that were copied from files without checksums: those of the copy say nothing about them.
pub(crate) const UNCHECKED_ROWS: &str = "airlock.unchecked_rows";

/// Columns that all files have.
const COLUMNS: &str = "
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
";

/// Columns that files have since values of gateways are taken out of the metadata. No column has nanoseconds since 1970,
/// which Spark refuses.
const GATEWAYS: &str = "
    OPTIONAL GROUP gateways (LIST) {
        REPEATED GROUP list {
            REQUIRED GROUP element {
                OPTIONAL BYTE_ARRAY gtw_id (UTF8);
                OPTIONAL INT32 timestamp (INTEGER(32, false));
                OPTIONAL INT64 time (TIMESTAMP(MILLIS, true));
                OPTIONAL INT32 time_nanos;
                OPTIONAL INT32 channel (INTEGER(32, false));
                OPTIONAL FLOAT rssi;
                OPTIONAL FLOAT snr;
                REQUIRED BYTE_ARRAY metadata (JSON);
            }
        }
    }
";
/// The column that files have since the time of functions is kept. What is added to the format follows at the end, so
/// that the other columns keep their places.
const MICROSECONDS: &str = "
    OPTIONAL INT32 microseconds (INTEGER(32, false));
";
/// The groups that those of gateways are in.
const ELEMENT: [&str; 3] = ["gateways", "list", "element"];

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
    GatewayId,
    GatewayTimestamp,
    GatewayTime,
    GatewayTimeNanos,
    GatewayChannel,
    GatewayRssi,
    GatewaySnr,
    GatewayMetadata,
    Microseconds,
}

/// Columns of numbers that differ little from row to row.
const DELTAS: [&str; 6] = ["recorded", "number", "received", "counter", "fuel", "microseconds"];
/// Columns with few different values.
const DICTIONARIES: [&str; 12] = [
    "writer",
    "app_id",
    "dev_id",
    "kind",
    "port",
    "metadata",
    "functions",
    "version",
    "limits",
    "outcome",
    "revision",
    "corrects",
];
/// Columns of texts and bytes.
const TEXTS: [&str; 8] = ["payload", "metadata", "extra", "result", "normalized", "failure", "logs", "warnings"];
/// Columns whose values are much alike, and which no query searches row by row: LZ4 is read faster, but takes twice the
/// room for them.
const ZSTD: [&str; 3] = ["dev_id", "metadata", "extra"];
/// Number of rows from which that pays for the tables that zstd begins with, dictionaries pay for numbers, and the filter
/// of devices and indexes of pages for searches. Files with fewer are many, and what each column has beside its values
/// takes most of their room.
const MANY_ROWS_MIN: usize = 512;
/// Columns of numbers whose dictionaries are longer than the values of few rows.
const MANY_ROWS_DICTIONARIES: [&str; 4] = ["writer", "port", "version", "revision"];
/// Numbers of differences of few rows that are packed together, and for how many the least is noted: room is taken for
/// all of them, so twice as many for 64-bit numbers, as usual, would be empty.
const FEW_ROWS_PACKED: (usize, usize) = (32, 128);
/// Bytes of a dictionary of metadata, beyond which it is so different that none pays: reading a row would read all of it.
const METADATA_DICTIONARY_BYTES_MAX: usize = 1 << 18;
/// Columns of one bit.
const BITS: [&str; 2] = ["confirmed", "is_retry"];

/// Returns true if a file has these columns, or those that files of earlier versions had.
pub(crate) fn is_ours(schema: &SchemaDescriptor) -> bool {
    let all = schema.columns();
    let (all, last) = all.split_at(all.len().min(Column::Microseconds as usize));
    let (columns, gateways) = all.split_at(all.len().min(Column::GatewayId as usize));
    let are_same = |lines: &str, columns: &[Arc<ColumnDescriptor>], path: &[&str]| {
        let mut lines = lines.lines().filter_map(|line| line.trim().strip_suffix(';'));
        columns.iter().all(|column| lines.next().is_some_and(|line| is_same(line, column, path)))
            && lines.next().is_none()
    };
    are_same(COLUMNS, columns, &[])
        && (gateways.is_empty() || are_same(GATEWAYS, gateways, &ELEMENT))
        && (last.is_empty() || are_same(MICROSECONDS, last, &[]))
}

/// Returns true if a column in these groups is what a line says.
fn is_same(line: &str, column: &ColumnDescriptor, path: &[&str]) -> bool {
    let Some((name, parents)) = column.path().parts().split_last() else { return false };
    // Of the groups of a list, one is optional and one is repeated.
    let (definition, repetition) = if path.is_empty() { (0, 0) } else { (2, 1) };
    let presence = match column.max_def_level() - definition {
        0 => "REQUIRED",
        1 => "OPTIONAL",
        _ => return false,
    };
    let described = format!("{presence} {} {name}", column.physical_type());
    // What follows in the line is how others should show it.
    let is_described = line.split(" (").next() == Some(described.as_str());
    is_described && parents == path && column.max_rep_level() == repetition
}

pub(crate) fn schema() -> Result<TypePtr> {
    parse_message_type(&format!("message history {{ {COLUMNS} {GATEWAYS} {MICROSECONDS} }}")).map(Arc::new)
}

/// The schemas of files of earlier versions: before gateways had columns, and before the time of functions was kept.
#[cfg(test)]
pub(crate) fn former_schemas() -> [TypePtr; 2] {
    ["", GATEWAYS]
        .map(|gateways| Arc::new(parse_message_type(&format!("message history {{ {COLUMNS} {gateways} }}")).unwrap()))
}

/// Returns the properties for writing a file of so many rows: `devices` is the number that the device filter should have
/// room for.
pub(crate) fn properties(devices: u64, rows: usize) -> Result<WriterProperties> {
    let path = |name: &str| ColumnPath::from(name);
    let has_many = rows >= MANY_ROWS_MIN;
    // Otherwise nearly all columns are one page, of which an index would say nothing.
    let device_statistics = if has_many { EnabledStatistics::Page } else { EnabledStatistics::Chunk };
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
        .set_offset_index_disabled(!has_many)
        .set_column_statistics_enabled(path("dev_id"), device_statistics)
        .set_column_bloom_filter_max_ndv(path("dev_id"), devices.max(1))
        .set_column_bloom_filter_enabled(path("dev_id"), has_many);
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
    builder = if has_many {
        ZSTD.iter().fold(builder, |builder, name| {
            builder.set_column_compression(path(name), Compression::ZSTD(ZstdLevel::default()))
        })
    } else {
        few_rows_properties(builder)?
    };
    builder = builder.set_column_dictionary_page_size_limit(path("metadata"), METADATA_DICTIONARY_BYTES_MAX);
    Ok(gateway_properties(builder, has_many).build())
}

/// Changes what is otherwise in a file of few rows.
fn few_rows_properties(builder: WriterPropertiesBuilder) -> Result<WriterPropertiesBuilder> {
    let path = |name: &str| ColumnPath::from(name);
    let (packed, block) = FEW_ROWS_PACKED;
    let packed = DeltaBinaryPackedEncoderOptions::try_new(block, block / packed)?;
    let builder = builder
        .set_delta_binary_packed_encoder_options(packed)
        .set_column_compression(path("dev_id"), Compression::LZ4_RAW)
        // Mostly null.
        .set_column_dictionary_enabled(path("corrects"), false)
        .set_column_compression(path("corrects"), Compression::LZ4_RAW);
    Ok(MANY_ROWS_DICTIONARIES.iter().fold(builder, |builder, name| {
        let builder = builder.set_column_dictionary_enabled(path(name), false);
        builder.set_column_encoding(path(name), Encoding::DELTA_BINARY_PACKED)
    }))
}

fn gateway_properties(builder: WriterPropertiesBuilder, has_many_rows: bool) -> WriterPropertiesBuilder {
    let path = |name: &str| ColumnPath::new(ELEMENT.iter().copied().chain([name]).map(str::to_owned).collect());
    let metadata = || path("metadata");
    let compression = if has_many_rows { Compression::ZSTD(ZstdLevel::default()) } else { Compression::LZ4_RAW };
    let mut builder = builder
        .set_column_dictionary_enabled(path("gtw_id"), true)
        .set_column_encoding(path("time"), Encoding::DELTA_BINARY_PACKED)
        .set_column_encoding(path("time_nanos"), Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(metadata(), true)
        .set_column_dictionary_page_size_limit(metadata(), METADATA_DICTIONARY_BYTES_MAX)
        .set_column_encoding(metadata(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
        .set_column_compression(metadata(), compression);
    for name in ["channel", "rssi", "snr"] {
        builder = builder.set_column_dictionary_enabled(path(name), has_many_rows);
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ours_as(text: &str) -> bool {
        let message = format!("message history {{ {text} }}");
        is_ours(&SchemaDescriptor::new(Arc::new(parse_message_type(&message).unwrap())))
    }

    #[test]
    fn the_columns_of_these_schemas_are_recognized_and_others_are_not() {
        assert!(is_ours(&SchemaDescriptor::new(schema().unwrap())));
        assert!(former_schemas().into_iter().all(|former| is_ours(&SchemaDescriptor::new(former))));
        let message = format!("{COLUMNS}{GATEWAYS}{MICROSECONDS}");
        for (from, to) in [
            ("INT64 fuel (INTEGER(64, false))", "INT32 fuel"),
            ("OPTIONAL INT32 version", "REQUIRED INT32 version"),
            ("OPTIONAL FLOAT rssi", "OPTIONAL DOUBLE rssi"),
            ("OPTIONAL FLOAT rssi", "REQUIRED FLOAT rssi"),
            ("OPTIONAL FLOAT rssi", "REPEATED FLOAT rssi"),
            ("OPTIONAL GROUP gateways", "REQUIRED GROUP gateways"),
            ("REQUIRED GROUP element", "OPTIONAL GROUP element"),
            ("GROUP list", "GROUP array"),
            ("OPTIONAL FLOAT snr;", ""),
            ("OPTIONAL FLOAT snr;", "OPTIONAL FLOAT snr; OPTIONAL FLOAT other;"),
            ("OPTIONAL INT32 microseconds", "REQUIRED INT32 microseconds"),
            ("INT32 microseconds (INTEGER(32, false));", "INT32 microseconds; OPTIONAL INT32 other;"),
        ] {
            assert_ne!(message.replacen(from, to, 1), message, "{from}");
            assert!(!is_ours_as(&message.replacen(from, to, 1)), "{to}");
        }
        assert!(!is_ours_as("REQUIRED INT64 recorded;"));
        assert!(!is_ours_as(&format!("{COLUMNS} OPTIONAL INT64 other;")));
        assert!(!is_ours_as(&format!("{COLUMNS}{MICROSECONDS}")));
    }

    #[test]
    fn every_column_has_one_encoding_and_its_place() {
        let schema = SchemaDescriptor::new(schema().unwrap());
        let names: Vec<_> = schema.columns().iter().map(|column| column.path().string()).collect();
        for name in DELTAS.iter().chain(&DICTIONARIES).chain(&TEXTS).chain(&BITS).chain(&ZSTD) {
            assert!(names.contains(&(*name).to_owned()), "{name}");
        }
        assert_eq!(names[Column::Recorded as usize], "recorded");
        assert_eq!(names[Column::Result as usize], "result");
        assert_eq!(names[Column::Corrects as usize], "corrects");
        assert_eq!(names[Column::GatewayId as usize], "gateways.list.element.gtw_id");
        assert_eq!(names[Column::GatewayMetadata as usize], "gateways.list.element.metadata");
        assert_eq!(names[Column::Microseconds as usize], "microseconds");
        assert_eq!(names.len(), Column::Microseconds as usize + 1);
    }
}
