//! Records as files of other programs, in parts.

mod csv;
mod parquet;

use std::{collections::BTreeSet, io, str::FromStr};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};

use self::{csv::CsvWriter, parquet::ParquetFile};
use crate::{Error, Page, Record, Skipped, Unchecked};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An object for each record and line.
    JsonLines,
    /// A line for each record, after one with the names of the columns.
    Csv,
    /// As history itself has them.
    Parquet,
}

/// A part of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportPart {
    /// Bytes of the file, at least one.
    Bytes(Bytes),
    /// The last part, unless it is empty: files that could not be read, whose records are missing, and foreign ones.
    Unreadable(Vec<Skipped>),
}

/// A text is not the name of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("format not valid: it is one of jsonl, csv and parquet")]
pub struct FormatError;

impl Format {
    /// The media type of such a file.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::JsonLines => "application/x-ndjson",
            Self::Csv => "text/csv",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    /// Returns the extension of such files, which also names the format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let formats = [Self::JsonLines, Self::Csv, Self::Parquet];
        formats.into_iter().find(|format| format.extension() == text).ok_or(FormatError)
    }
}

/// Writes a file as its records come.
enum Writer {
    JsonLines,
    Csv(CsvWriter),
    Parquet(Box<ParquetFile>),
}

impl Writer {
    fn new(format: Format) -> io::Result<Self> {
        Ok(match format {
            Format::JsonLines => Self::JsonLines,
            Format::Csv => Self::Csv(CsvWriter::default()),
            Format::Parquet => Self::Parquet(Box::new(ParquetFile::new()?)),
        })
    }

    /// The next part of the file.
    fn write(&mut self, records: &[Record]) -> io::Result<Vec<u8>> {
        match self {
            Self::JsonLines => json_lines(records),
            Self::Csv(csv) => csv.write(records),
            Self::Parquet(file) => file.write(records),
        }
    }

    /// The last part of the file. At most so many records come from files without checksums.
    fn end(self, unchecked: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::JsonLines => Ok(Vec::new()),
            Self::Csv(mut csv) => csv.write(&[]),
            Self::Parquet(file) => file.end(unchecked),
        }
    }
}

fn json_lines(records: &[Record]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// A file of these records, in parts. It ends after an error.
pub(crate) fn export(
    pages: impl Stream<Item = Result<Page, Error>> + Send,
    format: Format,
) -> impl Stream<Item = Result<ExportPart, Error>> + Send {
    let begin = ExportState::Records(Box::pin(pages), Writer::new(format), Notes::default());
    let parts = stream::try_unfold(begin, async |state| {
        let (mut pages, writer, mut notes) = match state {
            ExportState::Records(pages, writer, notes) => (pages, writer.map_err(Error::Export)?, notes),
            ExportState::Unreadable(skipped) if !skipped.is_empty() => {
                return Ok(Some((ExportPart::Unreadable(skipped), ExportState::Unreadable(Vec::new()))));
            }
            ExportState::Unreadable(_) => return Ok(None),
        };
        let (part, next) = match pages.next().await.transpose()? {
            Some(Page { records, skipped, unchecked, .. }) => {
                notes.unreadable.extend(skipped);
                notes.unchecked.extend(unchecked);
                notes.records += records.len() as u64;
                let (part, writer) = encode(writer, records).await?;
                (part, ExportState::Records(pages, Ok(writer), notes))
            }
            None => {
                let end = writer.end(notes.unchecked_records()).map_err(Error::Export)?;
                (end, ExportState::Unreadable(notes.unreadable.into_iter().collect()))
            }
        };
        Ok(Some((ExportPart::Bytes(part.into()), next)))
    });
    let is_empty = |part: &ExportPart| matches!(part, ExportPart::Bytes(bytes) if bytes.is_empty());
    parts.filter(move |part| std::future::ready(!part.as_ref().is_ok_and(is_empty)))
}

/// The rest of an export.
enum ExportState<P> {
    Records(P, io::Result<Writer>, Notes),
    Unreadable(Vec<Skipped>),
}

/// Notes on an export so far.
#[derive(Default)]
struct Notes {
    /// Files that could not be read.
    unreadable: BTreeSet<Skipped>,
    /// Files without checksums.
    unchecked: BTreeSet<Unchecked>,
    /// Number of records.
    records: u64,
}

impl Notes {
    /// The number of records that may come from files without checksums.
    fn unchecked_records(&self) -> u64 {
        self.unchecked.iter().map(|file| file.rows).sum::<u64>().min(self.records)
    }
}

/// Encoding takes long: other tasks of this thread should not wait for it.
async fn encode(mut writer: Writer, records: Vec<Record>) -> Result<(Vec<u8>, Writer), Error> {
    let encoded = tokio::task::spawn_blocking(move || (writer.write(&records), writer)).await;
    let (part, writer) = encoded.map_err(|error| Error::Task(error.into()))?;
    Ok((part.map_err(Error::Export)?, writer))
}
