//! Sources of stored uplinks, in batches that the threads read.

mod csv;
mod lines;
mod parquet;
mod postgres;
mod redis;
mod things_stack;

use std::{str, sync::Arc};

pub use self::{
    csv::CsvFile,
    lines::JsonLines,
    parquet::ParquetFile,
    postgres::{PostgresSettings, Rows, Table, is_postgres, updates::Updates},
    redis::{RedisSettings, StreamEvents, is_redis},
    things_stack::{StoredUplinks, is_things_stack},
};
use crate::{
    Error, MessageError,
    columns::Columns,
    message, revisions,
    stored::{Correction, StoredResult},
};

/// Maximum length of a line, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;

/// A source of stored uplinks.
pub trait UplinkSource: Send {
    /// The next uplinks; none at the end.
    fn next(&mut self) -> Result<Option<Batch>, Error>;

    /// Returns the unit in which its uplinks are numbered, such as `line`.
    fn unit(&self) -> &'static str;
}

/// Uplinks that a source has read at once, parsed only as far as it has to be done in turn.
#[derive(Debug)]
pub struct Batch {
    content: Content,
    corrections: Vec<Correction>,
}

#[derive(Debug)]
enum Content {
    Lines { first: u64, text: Vec<u8>, last_is_too_long: bool },
    Records { columns: Arc<Columns>, records: Vec<::csv::ByteRecord> },
    Uplinks { first: u64, uplinks: Vec<StoredResult> },
}

impl Batch {
    /// Lines of JSON; the last one is only reported if it was too long to keep.
    pub(crate) fn lines(first: u64, text: Vec<u8>, last_is_too_long: bool) -> Self {
        let corrections = revisions::in_lines(&text);
        Self { content: Content::Lines { first, text, last_is_too_long }, corrections }
    }

    /// Records of CSV, which know their lines.
    pub(crate) fn records(columns: Arc<Columns>, records: Vec<::csv::ByteRecord>) -> Self {
        let corrections = records.iter().filter_map(|record| columns.correction(record)).collect();
        Self { content: Content::Records { columns, records }, corrections }
    }

    /// Uplinks that a source has parsed itself, with the number of the first.
    pub fn uplinks(first: u64, uplinks: Vec<StoredResult>) -> Self {
        Self { content: Content::Uplinks { first, uplinks }, corrections: Vec::new() }
    }

    /// The same with known corrections of uplinks of this batch or later ones.
    pub(crate) fn with_corrections(self, corrections: Vec<Correction>) -> Self {
        Self { corrections, ..self }
    }

    /// Returns corrections of uplinks of this batch or later ones.
    pub(crate) fn corrections(&self) -> &[Correction] {
        &self.corrections
    }

    /// Gives everything in it to `each`, with its number.
    pub(crate) fn read(self, mut each: impl FnMut(u64, StoredResult)) {
        match self.content {
            Content::Lines { first, text, last_is_too_long } => {
                let mut number = first;
                for line in text.split_inclusive(|byte| *byte == b'\n') {
                    read_line(line, |found| each(number, found));
                    number += 1;
                }
                if last_is_too_long {
                    each(number, Err(format!("it has more than {LINE_BYTES_MAX} bytes")));
                }
            }
            Content::Records { columns, records } => {
                for record in records {
                    let line = record.position().map_or(0, ::csv::Position::line);
                    each(line, columns.uplink(&record));
                }
            }
            Content::Uplinks { first, uplinks } => {
                for (number, uplink) in (first..).zip(uplinks) {
                    each(number, uplink);
                }
            }
        }
    }
}

/// Reads a line. Blank ones are nothing, and neither are the brackets and commas of a list with an element on each line.
fn read_line(line: &[u8], each: impl FnOnce(StoredResult)) {
    let line = line.trim_ascii();
    let line = line.strip_suffix(b",").unwrap_or(line);
    if matches!(line, b"" | b"[" | b"]") {
        return;
    }
    each(match str::from_utf8(line) {
        Ok(text) => message::parse(text).map_err(|error| match error {
            MessageError::Json { problem, .. } => format!("it is not JSON: {problem}"),
            error => error.to_string(),
        }),
        Err(_) => Err("it is not UTF-8".to_owned()),
    });
}
