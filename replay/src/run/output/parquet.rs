//! Writes a Parquet file with a row for each uplink, with the old object and the new one.

use std::{
    io::{self, Write},
    mem,
    sync::Arc,
};

use parquet::{
    basic::Compression,
    data_type::{ByteArrayType, DataType, Int32Type, Int64Type},
    errors::{ParquetError, Result as ParquetResult},
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::{parser::parse_message_type, types::ColumnPath},
};
use types::Timestamp;

/// Maximum number of rows that are written together, and of their bytes: they are in memory until then.
const GROUP_ROWS: usize = 1 << 16;
const GROUP_BYTES: usize = 16 << 20;

// The times are in the finest unit that all readers know.
const MESSAGE: &str = "
message uplinks {
    OPTIONAL BYTE_ARRAY id (UTF8);
    OPTIONAL BYTE_ARRAY application (UTF8);
    OPTIONAL BYTE_ARRAY device (UTF8);
    OPTIONAL INT64 time (TIMESTAMP(MICROS, true));
    REQUIRED INT32 port (INTEGER(8, false));
    REQUIRED BYTE_ARRAY payload;
    REQUIRED BYTE_ARRAY verdict (UTF8);
    OPTIONAL BYTE_ARRAY old (JSON);
    OPTIONAL BYTE_ARRAY new (JSON);
    OPTIONAL BYTE_ARRAY failure (UTF8);
    REQUIRED INT64 fuel (INTEGER(64, false));
}";

/// Columns with few different values.
const DICTIONARIES: [&str; 5] = ["application", "device", "port", "verdict", "failure"];

/// An uplink and its result. Empty texts are null in a file, except for the verdict.
#[derive(Debug, Default)]
pub struct OutputRow {
    pub(crate) id: String,
    pub(crate) application: String,
    pub(crate) device: String,
    pub(crate) time: Option<Timestamp>,
    pub(crate) port: u8,
    pub(crate) payload: Vec<u8>,
    pub(crate) verdict: &'static str,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) failure: String,
    pub(crate) fuel: u64,
}

/// A Parquet file that is written, one row group after the other.
pub struct ParquetOutput<W: Write + Send> {
    file: SerializedFileWriter<W>,
    /// Rows of the next group, and their size.
    rows: Vec<OutputRow>,
    bytes: usize,
}

impl OutputRow {
    /// Its size in memory.
    fn bytes(&self) -> usize {
        let texts = [&self.id, &self.application, &self.device, &self.old, &self.new, &self.failure];
        size_of::<Self>() + self.payload.len() + texts.into_iter().map(String::len).sum::<usize>()
    }
}

impl<W: Write + Send> ParquetOutput<W> {
    /// Begins a file.
    pub fn new(out: W) -> io::Result<Self> {
        let schema = parse_message_type(MESSAGE).map_err(into_io)?;
        let file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties())).map_err(into_io)?;
        Ok(Self { file, rows: Vec::new(), bytes: 0 })
    }

    /// Adds rows.
    pub fn write(&mut self, rows: Vec<OutputRow>) -> io::Result<()> {
        for row in rows {
            self.bytes += row.bytes();
            self.rows.push(row);
            if self.rows.len() >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Writes what is left and the end of the file, and returns what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.file.into_inner().map_err(into_io)
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.bytes = 0;
        let rows = mem::take(&mut self.rows);
        write_group(&mut self.file, rows).map_err(into_io)
    }
}

fn properties() -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("airlock ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::LZ4_RAW)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for name in DICTIONARIES {
        builder = builder.set_column_dictionary_enabled(ColumnPath::from(name), true);
    }
    builder.build()
}

fn write_group<W: Write + Send>(file: &mut SerializedFileWriter<W>, rows: Vec<OutputRow>) -> ParquetResult<()> {
    let mut columns = Columns { group: file.next_row_group()?, rows };
    columns.texts(|row| &mut row.id)?;
    columns.texts(|row| &mut row.application)?;
    columns.texts(|row| &mut row.device)?;
    columns.optional::<Int64Type>(|row| row.time.map(|time| time.as_nanos().div_euclid(1000)))?;
    columns.required::<Int32Type>(|row| row.port.into())?;
    columns.required::<ByteArrayType>(|row| mem::take(&mut row.payload).into())?;
    columns.required::<ByteArrayType>(|row| row.verdict.into())?;
    columns.texts(|row| &mut row.old)?;
    columns.texts(|row| &mut row.new)?;
    columns.texts(|row| &mut row.failure)?;
    // Unsigned numbers are signed ones of the same bits in files.
    columns.required::<Int64Type>(|row| row.fuel as i64)?;
    columns.group.close().map(drop)
}

/// The columns of a row group, written in the order in which they are called.
struct Columns<'a, W: Write> {
    group: SerializedRowGroupWriter<'a, W>,
    rows: Vec<OutputRow>,
}

impl<W: Write + Send> Columns<'_, W> {
    /// Takes the texts out of the rows, so that each is in memory once.
    fn texts(&mut self, text: impl Fn(&mut OutputRow) -> &mut String) -> ParquetResult<()> {
        self.optional::<ByteArrayType>(|row| {
            let text = mem::take(text(row));
            (!text.is_empty()).then(|| text.into_bytes().into())
        })
    }

    fn optional<T: DataType>(&mut self, value: impl Fn(&mut OutputRow) -> Option<T::T>) -> ParquetResult<()> {
        let values: Vec<Option<T::T>> = self.rows.iter_mut().map(value).collect();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<T::T> = values.into_iter().flatten().collect();
        self.write::<T>(&values, Some(&levels))
    }

    fn required<T: DataType>(&mut self, value: impl Fn(&mut OutputRow) -> T::T) -> ParquetResult<()> {
        let values: Vec<T::T> = self.rows.iter_mut().map(value).collect();
        self.write::<T>(&values, None)
    }

    fn write<T: DataType>(&mut self, values: &[T::T], levels: Option<&[i16]>) -> ParquetResult<()> {
        let column = self.group.next_column()?;
        let mut column = column.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()
    }
}

/// The system's error, such as a full disk, as far as it is one.
fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::RowGroupMetaData;

    use super::*;

    #[test]
    fn groups_are_bounded_in_rows_and_in_bytes() {
        let row = |bytes: usize| OutputRow { verdict: "equal", old: "1".repeat(bytes), ..OutputRow::default() };
        let mut output = ParquetOutput::new(Vec::new()).unwrap();
        output.write((0..=GROUP_ROWS).map(|_| row(0)).collect()).unwrap();
        output.write(vec![row(GROUP_BYTES), row(0)]).unwrap();
        let groups: Vec<_> = output.file.flushed_row_groups().iter().map(RowGroupMetaData::num_rows).collect();
        assert_eq!(groups, [GROUP_ROWS as i64, 2]);
        assert_eq!((output.rows.len(), output.bytes), (1, row(0).bytes()));
        let file = output.finish().unwrap();
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    }
}
