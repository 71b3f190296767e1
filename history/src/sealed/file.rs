//! Opens files, and reads columns of them.

mod claims;
mod compact;
mod forms;
mod page_chunks;
mod pages;

use std::{
    fs::File,
    ops::{Range, RangeInclusive},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};

use parquet::{
    basic::{Compression, Type},
    bloom_filter::Sbbf,
    column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader},
    data_type::DataType,
    errors::{ParquetError, Result as ParquetResult},
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
        page_index::{
            column_index::ColumnIndexMetaData, index_reader::decode_column_index, offset_index::PageLocation,
        },
        serialized_reader::SerializedPageReader,
        statistics::Statistics,
    },
};

use self::{
    page_chunks::PageChunks,
    pages::{BoundedPages, VALUES_MAX},
};
use crate::{
    Error, Record, RecordId,
    sealed::{
        chunk::Chunks,
        parts::Parts,
        schema::{self, Column},
        selection::Selection,
    },
};

/// About the length of a gateway in JSON, which is much longer than its values.
const GATEWAY_BYTES: usize = 200;

/// A file that is open.
pub(crate) struct SealedFile {
    chunks: Arc<Chunks>,
    metadata: ParquetMetaData,
}

/// One row group of it.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    chunks: &'a Arc<Chunks>,
    metadata: &'a RowGroupMetaData,
    pub(crate) rows: usize,
}

/// A column of a row group, read from first to last.
pub(crate) struct ColumnRows<T: DataType> {
    reader: ColumnReaderImpl<T>,
    position: usize,
    /// The values that were read last; those that are null are not among them.
    pub(crate) values: Vec<T::T>,
    /// One for each row that has a value, zero for each that has none; empty if all have. Columns of gateways have
    /// levels of their own.
    pub(crate) levels: Vec<i16>,
    /// Of columns of gateways, zero for the first of a row; otherwise empty.
    pub(crate) repetition: Vec<i16>,
}

impl SealedFile {
    /// Opens a file, and reads what is wanted of it.
    pub(crate) fn read<T>(
        path: &Path,
        read: impl FnOnce(&Self) -> Result<ParquetResult<T>, Error>,
    ) -> Result<T, Error> {
        guarded(path, || Self::open(path).and_then(|file| read(&file)?.map_err(|source| Error::parquet(path, source))))
    }

    /// Opens a file that this crate wrote. [`Error::Damaged`] if it is another or not whole.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::file("open", path))?;
        Self::parse(path, Chunks::new(file).map_err(Error::file("read", path))?)
    }

    /// Opens a file that is elsewhere, and reads what is wanted of it.
    pub(crate) fn read_parts<T>(
        path: &Path,
        parts: &Arc<Parts>,
        read: impl FnOnce(&Self) -> Result<ParquetResult<T>, Error>,
    ) -> Result<T, Error> {
        guarded(path, || {
            let file = Self::parse(path, Chunks::elsewhere(Arc::clone(parts)))?;
            read(&file)?.map_err(|source| Error::parquet(path, source))
        })
    }

    fn parse(path: &Path, mut chunks: Chunks) -> Result<Self, Error> {
        let metadata = claims::metadata(&mut chunks).map_err(|source| Error::parquet(path, source))?;
        if !schema::is_ours(metadata.file_metadata().schema_descr()) {
            return Err(Error::damaged(path, "it has other columns"));
        }
        if metadata.row_groups().iter().any(|group| group.num_rows() > VALUES_MAX as i64) {
            return Err(Error::damaged(path, "it claims to have more rows in a group than it can have"));
        }
        // Some of the others become as long as they like, whatever their pages claim.
        let mut columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        if !columns.all(|column| is_bounded(column.compression())) {
            return Err(Error::damaged(path, "it is compressed in another way"));
        }
        Ok(Self { chunks: Arc::new(chunks), metadata })
    }

    /// About the memory of its records, in bytes: the values before compression, and what each record has beside them.
    /// A damaged file may claim anything.
    pub(crate) fn record_bytes(&self) -> u64 {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let of_group = |group: &RowGroupMetaData| {
            // What a group says of all columns together bounds nothing.
            let values = group.columns().iter().map(|column| count(column.uncompressed_size()));
            let gateways = group.columns().get(Column::GatewayId as usize).map_or(0, ColumnChunkMetaData::num_values);
            let beside = [(group.num_rows(), size_of::<Record>()), (gateways, GATEWAY_BYTES)];
            let beside = beside.map(|(number, each)| count(number).saturating_mul(each as u64));
            values.chain(beside).fold(0, u64::saturating_add)
        };
        self.metadata.row_groups().iter().map(of_group).fold(0, u64::saturating_add)
    }

    /// Returns the number of rows that no checksum vouches for: all of a file without, and those copied from one.
    pub(crate) fn unchecked_rows(&self) -> u64 {
        let file = self.metadata.file_metadata();
        let rows = file.num_rows().try_into().unwrap_or(0);
        if !self.chunks.is_checked() {
            return rows;
        }
        let mut notes = file.key_value_metadata().into_iter().flatten();
        let noted = notes.find(|note| note.key == schema::UNCHECKED_ROWS);
        let noted = noted.map(|note| note.value.as_deref()?.parse::<u64>().ok());
        noted.map_or(0, |count| count.unwrap_or(rows).min(rows))
    }

    /// Gives up what was fetched of a file that is elsewhere, but not its end.
    pub(crate) fn release(&self) {
        self.chunks.release();
    }

    /// Its row groups.
    pub(crate) fn groups(&self) -> impl DoubleEndedIterator<Item = Group<'_>> {
        self.metadata.row_groups().iter().map(|metadata| Group {
            chunks: &self.chunks,
            metadata,
            rows: metadata.num_rows().try_into().unwrap_or(0),
        })
    }
}

impl Group<'_> {
    /// False if it was written before there was such a column.
    pub(crate) fn has(&self, column: Column) -> bool {
        self.metadata.num_columns() > column as usize
    }

    fn column(&self, column: Column) -> &ColumnChunkMetaData {
        self.metadata.column(column as usize)
    }

    /// The first and the last millisecond in which a row was recorded. None if the file does not say.
    pub(crate) fn recorded(&self) -> Option<(u64, u64)> {
        let Some(Statistics::Int64(statistics)) = self.column(Column::Recorded).statistics() else { return None };
        Some(((*statistics.min_opt()?).try_into().ok()?, (*statistics.max_opt()?).try_into().ok()?))
    }

    /// False only if no row corrects a record with one of these ids.
    pub(crate) fn may_correct(&self, ids: &RangeInclusive<RecordId>) -> bool {
        let Some(Statistics::ByteArray(statistics)) = self.column(Column::Corrects).statistics() else { return true };
        if statistics.null_count_opt().is_some_and(|nulls| nulls == self.rows as u64) {
            return false;
        }
        let (first, last) = (ids.start().to_string(), ids.end().to_string());
        statistics.min_opt().is_none_or(|min| min.data() <= last.as_bytes())
            && statistics.max_opt().is_none_or(|max| max.data() >= first.as_bytes())
    }

    /// The rows among which those of a device are.
    pub(crate) fn device(&self, dev_id: &str) -> ParquetResult<Selection> {
        // Statistics are near the end of the file, and smaller than the filter.
        let rows = self.device_by_statistics(dev_id)?;
        if rows.is_empty() {
            return Ok(rows);
        }
        let filter = Sbbf::read_from_column_chunk(self.column(Column::DevId), &**self.chunks)?;
        Ok(if filter.is_some_and(|filter| !filter.check(dev_id)) { Selection::default() } else { rows })
    }

    fn device_by_statistics(&self, dev_id: &str) -> ParquetResult<Selection> {
        let column = self.column(Column::DevId);
        if let Some(Statistics::ByteArray(statistics)) = column.statistics()
            && (statistics.min_opt().is_some_and(|min| min.data() > dev_id.as_bytes())
                || statistics.max_opt().is_some_and(|max| max.data() < dev_id.as_bytes()))
        {
            return Ok(Selection::default());
        }
        let (Some(pages), Some(locations)) = (self.device_pages()?, self.locations(column)?) else {
            return Ok(Selection::all(self.rows));
        };
        let ColumnIndexMetaData::BYTE_ARRAY(pages) = pages else { return Ok(Selection::all(self.rows)) };
        let mut rows = Selection::default();
        for (page, location) in locations.iter().enumerate() {
            let bounds = (pages.min_value(page), pages.max_value(page));
            let may_have = bounds.0.is_none_or(|min| min <= dev_id.as_bytes())
                && bounds.1.is_none_or(|max| max >= dev_id.as_bytes());
            let start = usize::try_from(location.first_row_index).unwrap_or(0);
            let next = locations.get(page + 1).and_then(|next| next.first_row_index.try_into().ok());
            rows.push_range(if may_have { start..next.unwrap_or(self.rows).min(self.rows) } else { 0..0 });
        }
        Ok(rows)
    }

    fn device_pages(&self) -> ParquetResult<Option<ColumnIndexMetaData>> {
        let range = self.column(Column::DevId).column_index_range();
        range.map(|range| decode_column_index(&self.part(range)?, Type::BYTE_ARRAY)).transpose()
    }

    fn locations(&self, column: &ColumnChunkMetaData) -> ParquetResult<Option<Vec<PageLocation>>> {
        let Some(range) = column.offset_index_range() else { return Ok(None) };
        Ok(Some(claims::page_locations(&self.part(range)?)?))
    }

    fn part(&self, range: Range<u64>) -> ParquetResult<bytes::Bytes> {
        claims::description(self.chunks, range.start, range.end.saturating_sub(range.start))
    }

    /// Fetches what columns have of these rows, if the file is elsewhere, because a request for each page takes long.
    pub(crate) fn need(&self, columns: &[Column], rows: &Selection) -> ParquetResult<()> {
        self.need_of(columns.iter().map(|column| self.column(*column)), rows)
    }

    /// The same for all columns.
    pub(crate) fn need_all(&self, rows: &Selection) -> ParquetResult<()> {
        self.need_of(self.metadata.columns(), rows)
    }

    fn need_of<'c>(
        &self,
        columns: impl IntoIterator<Item = &'c ColumnChunkMetaData>,
        rows: &Selection,
    ) -> ParquetResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.chunks.need(|| {
            let mut ranges = Vec::new();
            columns.into_iter().try_for_each(|column| self.add_pages(column, rows, &mut ranges))?;
            Ok(ranges)
        })
    }

    /// Adds where the pages of a column with these rows are, and its dictionary.
    fn add_pages(
        &self,
        column: &ColumnChunkMetaData,
        rows: &Selection,
        ranges: &mut Vec<Range<u64>>,
    ) -> ParquetResult<()> {
        let (start, length) = column.byte_range();
        let Some(pages) = self.locations(column)? else {
            ranges.push(start..start.saturating_add(length));
            return Ok(());
        };
        let position = |page: &PageLocation| u64::try_from(page.offset).unwrap_or(0);
        let first_row = |page: &PageLocation| usize::try_from(page.first_row_index).unwrap_or(0);
        // The dictionary is before the first page.
        ranges.extend(pages.first().map(|first| start..position(first)).filter(|range| !range.is_empty()));
        for (place, page) in pages.iter().enumerate() {
            if rows.has_any(&(first_row(page)..pages.get(place + 1).map_or(self.rows, first_row))) {
                let length = u64::try_from(page.compressed_page_size).unwrap_or(0);
                ranges.push(position(page)..position(page).saturating_add(length));
            }
        }
        Ok(())
    }

    /// Begins to read a column.
    pub(crate) fn read<T: DataType>(&self, column: Column) -> ParquetResult<ColumnRows<T>> {
        let metadata = self.column(column);
        let locations = self.locations(metadata)?;
        let (start, length) = metadata.byte_range();
        let place = start..start.saturating_add(length);
        let chunks = PageChunks::new(self.chunks, place, metadata.uncompressed_size(), locations.is_some())?;
        let pages = SerializedPageReader::new(Arc::new(chunks), metadata, self.rows, locations)?;
        let pages = BoundedPages::new(pages, metadata.column_descr(), self.rows);
        let reader = get_column_reader(metadata.column_descr_ptr(), Box::new(pages));
        let reader = get_typed_column_reader(reader);
        Ok(ColumnRows { reader, position: 0, values: Vec::new(), levels: Vec::new(), repetition: Vec::new() })
    }
}

impl<T: DataType> ColumnRows<T> {
    /// Reads the values of these rows, which follow those that were read before.
    pub(crate) fn take(&mut self, rows: &Selection) -> ParquetResult<()> {
        self.values.clear();
        self.levels.clear();
        self.repetition.clear();
        rows.ranges().iter().try_for_each(|range| self.take_range(range))
    }

    fn take_range(&mut self, range: &Range<usize>) -> ParquetResult<()> {
        let gap = range.start.saturating_sub(self.position);
        let skipped = if gap > 0 { self.reader.skip_records(gap)? } else { 0 };
        let levels = (Some(&mut self.levels), Some(&mut self.repetition));
        let (taken, ..) = self.reader.read_records(range.len(), levels.0, levels.1, &mut self.values)?;
        self.position = range.end;
        let is_whole = skipped == gap && taken == range.len();
        if is_whole { Ok(()) } else { Err(ParquetError::General("a column has too few rows".to_owned())) }
    }
}

/// Returns true for the ways in which ours are compressed, whose readers make no more of a page than it claims.
fn is_bounded(compression: Compression) -> bool {
    matches!(compression, Compression::UNCOMPRESSED | Compression::LZ4_RAW | Compression::ZSTD(_))
}

/// Reads a file which may have anything in it: its reader may even panic.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(Error::damaged(path, "its reader panicked")))
}

/// Returns the compressed size of each column of a file in bytes, for measurements.
pub fn column_bytes(path: &Path) -> Result<Vec<(String, u64)>, Error> {
    let file = SealedFile::open(path)?;
    let columns = file.metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let bytes = |column: &ColumnChunkMetaData| u64::try_from(column.compressed_size()).unwrap_or(0);
    Ok(columns.map(|column| (column.column_path().string(), bytes(column))).collect())
}

#[cfg(test)]
mod tests {
    use parquet::file::{properties::WriterProperties, writer::SerializedFileWriter};

    use super::*;
    use crate::{
        Kind, NewRecord,
        record::View,
        sealed::write::{write_file, write_groups},
    };

    fn record() -> Record {
        let id = RecordId::first(5);
        let (app_id, dev_id) = ("my-app".parse().unwrap(), "a1".parse().unwrap());
        let new = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, id.recorded());
        View::of_new(id, &new).to_record().unwrap()
    }

    #[test]
    fn files_that_are_compressed_in_another_way_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some-file");
        for (compression, is_read) in [(Compression::LZ4_RAW, true), (Compression::LZ4, false)] {
            let properties = WriterProperties::builder().set_compression(compression).build();
            let file = File::create(&path).unwrap();
            let mut writer = SerializedFileWriter::new(file, schema::schema().unwrap(), Arc::new(properties)).unwrap();
            write_groups(&mut writer, &[&record()]).unwrap();
            writer.close().unwrap();
            let opened = SealedFile::open(&path).map(drop);
            assert_eq!(opened.is_ok(), is_read, "{compression}: {opened:?}");
        }
    }

    #[test]
    fn small_records_count_as_the_memory_that_they_need() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("some-file");
        let record = record();
        write_file(&path, &[&record; 1000]).unwrap();
        let bytes = SealedFile::open(&path).unwrap().record_bytes();
        assert!(bytes > 1000 * size_of::<Record>() as u64, "{bytes}");
    }

    #[test]
    fn a_file_whose_reader_panics_is_damaged() {
        let read = guarded::<()>(Path::new("some-file"), || panic!("on purpose"));
        assert!(matches!(read, Err(Error::Damaged { path, .. }) if path == Path::new("some-file")));
    }
}
