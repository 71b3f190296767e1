//! Writes files.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    sync::Arc,
};

use parquet::{
    errors::Result as ParquetResult,
    file::{metadata::KeyValue, writer::SerializedFileWriter},
};

use crate::{
    Error, Record, RecordId,
    record::{View, moment},
    sealed::{
        checksums::ChecksumWriter,
        column::{Chunk, Columns},
        gateways::columns::GatewayColumns,
        schema::{GROUP_ROWS, UNCHECKED_ROWS, properties, schema},
    },
};

/// Number of rows that are read together, so few that the processor's cache has room for them.
const CHUNK_ROWS: usize = 512;
/// Extension of the names of files.
pub(crate) const FILE_EXTENSION: &str = "parquet";
/// Extension of the names of unfinished files.
pub(crate) const UNFINISHED: &str = "unfinished";

/// A file that is being written.
pub(crate) type FileWriter<W> = SerializedFileWriter<ChecksumWriter<W>>;

/// A row that is read when it is written.
pub(crate) trait Row: Copy {
    fn id(&self) -> RecordId;
    fn dev_id(&self) -> &[u8];
    /// None if it is damaged.
    fn view(&self) -> Option<View<'_>>;
}

impl Row for &Record {
    fn id(&self) -> RecordId {
        self.id
    }

    fn dev_id(&self) -> &[u8] {
        self.dev_id.as_str().as_bytes()
    }

    fn view(&self) -> Option<View<'_>> {
        Some(Record::view(self))
    }
}

/// Writes a file of rows, which may not be on disk yet. The rows are in the order of [`sort`].
pub(crate) fn write_file(path: &Path, rows: &[impl Row]) -> Result<(), Error> {
    write_copy(path, rows, 0)
}

/// The same of rows of other files, of which so many had no checksums.
pub(crate) fn write_copy(path: &Path, rows: &[impl Row], unchecked: u64) -> Result<(), Error> {
    let file = File::create(path).map_err(Error::file("create", path))?;
    let buffered = BufWriter::with_capacity(1 << 18, file);
    let failed = |source: parquet::errors::ParquetError| Error::file("write", path)(into_io(source));
    let buffered = write_rows(buffered, rows, unchecked).map_err(failed)?;
    buffered.into_inner().map(drop).map_err(|error| Error::file("write", path)(error.into_error()))
}

/// Puts rows into the order in which files have them: by device, then by time.
pub(crate) fn sort<R: Row>(rows: &[R]) -> Vec<R> {
    let mut devices: HashMap<&[u8], Vec<(RecordId, usize)>> = HashMap::new();
    for (place, row) in rows.iter().enumerate() {
        devices.entry(row.dev_id()).or_default().push((row.id(), place));
    }
    let mut devices: Vec<_> = devices.into_iter().collect();
    devices.sort_unstable_by_key(|(dev_id, _)| *dev_id);
    let sorted = devices.into_iter().flat_map(|(_, mut places)| {
        places.sort_unstable();
        places
    });
    sorted.filter_map(|(_, place)| rows.get(place).copied()).collect()
}

/// Writes rows in the format of a file.
fn write_rows<W: Write + Send>(out: W, rows: &[impl Row], unchecked: u64) -> ParquetResult<W> {
    let devices = rows.chunk_by(|left, right| left.dev_id() == right.dev_id()).count();
    let mut writer = new_writer(out, devices as u64, rows.len())?;
    write_groups(&mut writer, rows)?;
    end_file(writer, unchecked)
}

/// Begins a file of so many rows: `devices` is how many the filter for them has room for.
pub(crate) fn new_writer<W: Write + Send>(out: W, devices: u64, rows: usize) -> ParquetResult<FileWriter<W>> {
    SerializedFileWriter::new(ChecksumWriter::new(out), schema()?, Arc::new(properties(devices, rows)?))
}

/// Ends a file with what other programs need, and its checksums. So many rows come from files without.
pub(crate) fn end_file<W: Write + Send>(mut writer: FileWriter<W>, unchecked: u64) -> ParquetResult<W> {
    if unchecked > 0 {
        writer.append_key_value_metadata(KeyValue::new(UNCHECKED_ROWS.to_owned(), unchecked.to_string()));
    }
    Ok(writer.into_inner()?.finish()?)
}

/// Adds rows to a file.
pub(crate) fn write_groups<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    rows: &[impl Row],
) -> ParquetResult<()> {
    for rows in rows.chunks(GROUP_ROWS) {
        let (mut columns, mut gateways, mut last) = (Columns::default(), GatewayColumns::default(), Columns::default());
        for rows in rows.chunks(CHUNK_ROWS) {
            let views: Vec<_> = rows.iter().filter_map(Row::view).collect();
            let left = gateways.add(&views);
            let views: Vec<_> =
                views.iter().zip(left.texts()).map(|(view, metadata)| View { metadata, ..*view }).collect();
            add(&mut columns.chunk(&views));
            last.chunk(&views).optional_ints(|row| row.microseconds);
        }
        let mut group = writer.next_row_group()?;
        columns.write(&mut group)?;
        gateways.write(&mut group)?;
        last.write(&mut group)?;
        group.close()?;
    }
    Ok(())
}

/// Adds rows to all columns that files have had from the first version on.
fn add(columns: &mut Chunk<'_, '_>) {
    columns.longs(|row| row.id.millis as i64);
    columns.ints(|row| row.id.writer);
    columns.ints(|row| row.id.number);
    columns.longs(|row| moment::parts(row.received).0);
    columns.optional_ints(|row| Some(moment::parts(row.received).1).filter(|nanos| *nanos > 0));
    columns.bytes(|row| row.app_id.as_bytes());
    columns.bytes(|row| row.dev_id.as_bytes());
    columns.bytes(|row| row.kind.as_bytes());
    columns.ints(|row| row.port.into());
    columns.ints(|row| row.counter);
    columns.bools(|row| row.confirmed);
    columns.bools(|row| row.is_retry);
    columns.bytes(|row| row.payload);
    columns.optional_text(|row| row.metadata);
    columns.optional_text(|row| row.extra);
    columns.optional_longs(|row| row.seed.map(|seed| seed as i64));
    columns.optional_bytes(|row| row.functions.map(<[u8; 32]>::as_slice));
    columns.optional_ints(|row| row.version);
    columns.optional_bytes(|row| row.limits.map(<[u8; 8]>::as_slice));
    columns.bytes(|row| row.outcome.as_str().as_bytes());
    columns.optional_text(|row| row.result);
    columns.optional_text(|row| row.normalized);
    columns.optional_bytes(|row| row.failure.map(str::as_bytes));
    columns.optional_text(|row| row.logs);
    columns.optional_text(|row| row.warnings);
    columns.longs(|row| row.fuel as i64);
    columns.ints(|row| row.revision);
    columns.corrects();
}

/// Gives an unfinished file its name.
pub(crate) fn finish(unfinished: &Path, path: &Path) -> Result<(), Error> {
    fs::rename(unfinished, path).map_err(Error::file("rename", unfinished))
}

/// The system's error, such as a full disk, as far as it is one.
pub(crate) fn into_io(error: parquet::errors::ParquetError) -> std::io::Error {
    match error {
        parquet::errors::ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(source) => std::io::Error::other(source),
        },
        error => std::io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;
    use crate::{
        Kind, NewRecord,
        sealed::{
            file::column_bytes,
            rows::read_all,
            schema::{Column, former_schemas},
        },
    };

    fn record(number: u32, metadata: &str) -> Record {
        let id = RecordId::new(5, 1, number);
        let (app_id, dev_id) = ("my-app".parse().unwrap(), "a1".parse().unwrap());
        let new = NewRecord { metadata, ..NewRecord::new(&app_id, &dev_id, &Kind::Uplink, id.recorded()) };
        View::of_new(id, &new).to_record().unwrap()
    }

    #[test]
    fn only_files_of_many_rows_have_indexes_of_pages_and_a_filter_of_devices() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some-file");
        let record = record(1, "");
        for (rows, has_index) in [(500, false), (3000, true)] {
            write_file(&path, &vec![&record; rows]).unwrap();
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(&path).unwrap()).unwrap();
            let columns = metadata.row_group(0).columns();
            assert!(columns.iter().all(|column| column.offset_index_range().is_some() == has_index), "{rows} rows");
            let dev_id = &columns[Column::DevId as usize];
            assert_eq!(dev_id.bloom_filter_offset().is_some(), has_index, "{rows} rows");
            assert_eq!(read_all(&path).unwrap().0.len(), rows);
        }
    }

    #[test]
    fn a_row_of_200_takes_at_most_100_bytes() {
        let records = (0..200_u32).map(|number| {
            let dev_id = format!("station-{}", number / 20).parse().unwrap();
            let payload = [1, 3, 5].map(|step| number.wrapping_mul(2_654_435_761 + step).to_le_bytes()).concat();
            let (id, result) = (RecordId::new(1000 * u64::from(number), 1, number), format!(r#"{{"level":{number}}}"#));
            Record { id, dev_id, payload, result, counter: number % 20, fuel: 25_000, ..record(number, "") }
        });
        let records: Vec<_> = records.collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some-file");
        write_file(&path, &sort(&records.iter().collect::<Vec<_>>())).unwrap();
        let bytes = path.metadata().unwrap().len();
        assert!(bytes <= 200 * 100, "{bytes}");
        assert_eq!(read_all(&path).unwrap(), (records, 0));
    }

    /// Writes a file as earlier versions did: without columns of gateways, or without the time of functions alone.
    fn write_former(path: &Path, records: &[Record], has_gateways: bool) {
        let whole: Vec<_> = records.iter().map(Record::view).collect();
        let (mut columns, mut gateways) = (Columns::default(), GatewayColumns::default());
        let left = gateways.add(&whole);
        let split: Vec<_> = whole.iter().zip(left.texts()).map(|(view, metadata)| View { metadata, ..*view }).collect();
        add(&mut columns.chunk(if has_gateways { &split } else { &whole }));
        let schema = former_schemas()[usize::from(has_gateways)].clone();
        let (file, properties) = (File::create(path).unwrap(), properties(1, records.len()).unwrap());
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        columns.write(&mut group).unwrap();
        if has_gateways {
            gateways.write(&mut group).unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn files_of_earlier_versions_are_read_and_can_be_merged_into_new_ones() {
        let metadata = [
            r#"{"time":"1970-01-01T00:00:00.005Z","gateways":[{"gtw_id":"g","rssi":-7.0}]}"#,
            "",
            r#"{"time":null,"gateways":null}"#,
            r#"{"gateways":[]}"#,
        ];
        let records: Vec<_> = (0..).zip(metadata).map(|(number, metadata)| record(number, metadata)).collect();
        let new =
            [None, Some(0), Some(34), Some(u32::MAX)].map(|microseconds| Record { microseconds, ..record(9, "") });
        let dir = tempfile::tempdir().unwrap();
        let [former, merged] = ["former", "merged"].map(|name| dir.path().join(name));
        for (has_gateways, count) in [(false, 28), (true, 36)] {
            write_former(&former, &records, has_gateways);
            assert_eq!(read_all(&former).unwrap(), (records.clone(), 4));
            assert_eq!(column_bytes(&former).unwrap().len(), count);
            let all = [read_all(&former).unwrap().0, new.to_vec()].concat();
            write_file(&merged, &all.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(read_all(&merged).unwrap(), (all, 0));
            assert_eq!(column_bytes(&merged).unwrap().len(), 37);
        }
    }
}
