//! Files of CSV whose first line names the columns.

use std::{
    io::{self, BufRead, BufReader, Read},
    sync::Arc,
};

use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::{
    Batch, ColumnNames, Error, UplinkSource,
    columns::{Columns, Encoding},
};

/// Maximum size of a record, in bytes: a quotation mark that nothing closes must not take all memory.
const RECORD_BYTES_MAX: usize = 4 << 20;
/// Number of records, or of their bytes, that are enough for a batch.
const BATCH_RECORDS: usize = 256;
const BATCH_BYTES: usize = 128 << 10;
const INPUT_BYTES: usize = 256 << 10;

/// Records of CSV from a file or a pipe.
pub struct CsvFile<R> {
    name: String,
    reader: Reader<Bounded<R>>,
    columns: Arc<Columns>,
    /// The first record, which was read to see how its payload is written.
    first: Option<ByteRecord>,
}

/// Input that ends with an error if one record takes too much of it.
struct Bounded<R> {
    input: BufReader<R>,
    left: usize,
}

impl<R: Read + Send> CsvFile<R> {
    /// Reads the names of the columns from `input`, which people call `name`.
    pub fn open(
        name: impl Into<String>,
        input: R,
        names: &ColumnNames,
        encoding: Option<Encoding>,
    ) -> Result<Self, Error> {
        let name = name.into();
        let mut input = BufReader::with_capacity(INPUT_BYTES, input);
        let start = input.fill_buf().map_err(|source| Error::Read { name: name.clone(), source })?;
        let delimiter = delimiter(start);
        if start.starts_with("\u{feff}".as_bytes()) {
            input.consume("\u{feff}".len());
        }
        let mut reader = ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(Bounded { input, left: RECORD_BYTES_MAX });
        let header = reader.byte_headers().map_err(|error| unreadable(&name, error))?.clone();
        let mut first = ByteRecord::new();
        let has_first = reader.read_byte_record(&mut first).map_err(|error| unreadable(&name, error))?;
        let first = has_first.then_some(first);
        let columns = Columns::of_csv(&name, &header, first.as_ref(), names, encoding)?;
        Ok(Self { name, reader, columns: Arc::new(columns), first })
    }
}

impl<R: Read + Send> UplinkSource for CsvFile<R> {
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        let mut records: Vec<ByteRecord> = self.first.take().into_iter().collect();
        let mut bytes = 0;
        while records.len() < BATCH_RECORDS && bytes < BATCH_BYTES {
            self.reader.get_mut().left = RECORD_BYTES_MAX;
            let mut record = ByteRecord::new();
            if !self.reader.read_byte_record(&mut record).map_err(|error| unreadable(&self.name, error))? {
                break;
            }
            bytes += record.as_slice().len();
            records.push(record);
        }
        Ok((!records.is_empty()).then(|| Batch::records(self.columns.clone(), records)))
    }

    fn unit(&self) -> &'static str {
        "line"
    }
}

/// Returns the delimiter of the columns: a comma, or what spreadsheets write where numbers have a comma.
fn delimiter(start: &[u8]) -> u8 {
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |delimiter: u8| line.iter().filter(|byte| **byte == delimiter).count();
    [b'\t', b';', b','].into_iter().max_by_key(|delimiter| count(*delimiter)).unwrap_or(b',')
}

fn unreadable(name: &str, error: csv::Error) -> Error {
    Error::Read { name: name.to_owned(), source: error.into() }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.left = self.left.saturating_sub(read);
        if read > 0 && self.left == 0 {
            let reason = format!("a record has more than {RECORD_BYTES_MAX} bytes: is a quotation mark missing?");
            return Err(io::Error::other(reason));
        }
        Ok(read)
    }
}
