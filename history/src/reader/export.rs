//! Records as files of other programs, in parts.

mod csv;
mod parquet;

use std::{io, str::FromStr};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};

use self::{csv::CsvWriter, parquet::ParquetFile};
use crate::{Error, Record};

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

    /// The last part of the file.
    fn end(self) -> io::Result<Vec<u8>> {
        match self {
            Self::JsonLines => Ok(Vec::new()),
            Self::Csv(mut csv) => csv.write(&[]),
            Self::Parquet(file) => file.end(),
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

/// A file of these records, in parts that are not empty. It ends after an error.
pub(crate) fn export(
    batches: impl Stream<Item = Result<Vec<Record>, Error>> + Send,
    format: Format,
) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let begin = (Box::pin(batches), Some(Writer::new(format)));
    let parts = stream::try_unfold(begin, async |(mut batches, writer)| {
        let Some(writer) = writer else { return Ok(None) };
        let mut writer = writer.map_err(Error::Export)?;
        let (part, next) = match batches.next().await.transpose()? {
            // Encoding takes long: other tasks of this thread should not wait for it.
            Some(records) => tokio::task::spawn_blocking(move || (writer.write(&records), Some(Ok(writer)))).await,
            None => Ok((writer.end(), None)),
        }
        .map_err(|error| Error::Task(error.into()))?;
        Ok(Some((Bytes::from(part.map_err(Error::Export)?), (batches, next))))
    });
    parts.filter(|part| std::future::ready(part.as_ref().map_or(true, |part| !part.is_empty())))
}
