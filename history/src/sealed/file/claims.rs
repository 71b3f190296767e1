//! The claims of a file about itself, checked before the `parquet` crate believes them: it makes room for as much as is
//! claimed, and memory that is not there ends the process.

use bytes::Bytes;
use parquet::{
    errors::{ParquetError, Result},
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
        page_index::{index_reader::decode_offset_index, offset_index::PageLocation},
        reader::{ChunkReader, Length},
    },
};

use super::{
    compact::{Compact, STOP},
    forms::{FILE, OFFSET_INDEX, PAGE_HEADER},
};
use crate::sealed::{
    checksums::Checksums,
    chunk::{Chunks, END_BYTES},
};

/// Maximum length of a description in bytes, which takes many times as much in memory. Ours have some 300 kB.
const DESCRIPTION_BYTES_MAX: usize = 8 << 20;

/// Reads the description of a file. From then on, what is read of the file is checked, if it has checksums.
pub(super) fn metadata(chunks: &mut Chunks) -> Result<ParquetMetaData> {
    let end = chunks.len().checked_sub(END_BYTES).ok_or_else(not_parquet)?;
    let last = chunks.get_bytes(end, END_BYTES as usize)?;
    let Some((length, b"PAR1")) = last.split_first_chunk::<4>() else { return Err(not_parquet()) };
    let length = u32::from_le_bytes(*length);
    let start = end.checked_sub(length.into()).ok_or_else(|| damaged("its description is longer than the file"))?;
    let description = checked_description(chunks, start, length.into())?;
    let mut compact = Compact::new(&description);
    let is_possible = compact.fields(FILE, 0).is_some() && compact.position() == description.len();
    if !is_possible {
        return Err(damaged("its description claims what cannot be"));
    }
    let metadata = ParquetMetaDataReader::decode_metadata(&description)?;
    if has_rows_as_claimed(&metadata) { Ok(metadata) } else { Err(damaged("it claims different numbers of rows")) }
}

/// False if a number of rows is not that of the file, of its groups and of their columns: records would be missing.
fn has_rows_as_claimed(metadata: &ParquetMetaData) -> bool {
    let groups = metadata.row_groups();
    let rows = groups.iter().map(RowGroupMetaData::num_rows).fold(0, i64::saturating_add);
    let have_all = |group: &RowGroupMetaData| {
        // Columns of lists have any number of values in a row.
        let mut flat = group.columns().iter().filter(|column| column.column_descr().max_rep_level() == 0);
        flat.all(|column| column.num_values() == group.num_rows())
    };
    rows == metadata.file_metadata().num_rows() && groups.iter().all(have_all)
}

/// The description of a file, without its checksums.
fn checked_description(chunks: &mut Chunks, start: u64, length: u64) -> Result<Bytes> {
    let mut rest = description(chunks, start, length + END_BYTES)?;
    let Some(checksums) = Checksums::find(&rest, start)? else {
        rest.truncate(length as usize);
        return Ok(rest);
    };
    let length = checksums.covered() - start;
    chunks.check(checksums)?;
    Ok([&description(chunks, start, length)?[..], &[STOP]].concat().into())
}

/// Reads a description within a file.
pub(super) fn description(chunks: &Chunks, start: u64, length: u64) -> Result<Bytes> {
    let length = usize::try_from(length).ok().filter(|length| *length <= DESCRIPTION_BYTES_MAX);
    chunks.get_bytes(start, length.ok_or_else(|| damaged("a description in it is too long"))?)
}

/// Reads where the pages of a column are.
pub(super) fn page_locations(description: &[u8]) -> Result<Vec<PageLocation>> {
    let checked = Compact::new(description).fields(OFFSET_INDEX, 0);
    checked.ok_or_else(|| damaged("the places of its pages are not those of a file"))?;
    Ok(decode_offset_index(description)?.page_locations().clone())
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    /// Its own length in bytes.
    pub(super) length: u64,
    /// Length of the page behind it, in bytes.
    pub(super) packed: u64,
    /// Length of the page in bytes once it is not compressed any more.
    pub(super) unpacked: u64,
}

impl PageHeader {
    /// Reads the header at the start of these bytes.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).ok_or_else(|| damaged("the header of a page claims what cannot be"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut compact = Compact::new(bytes);
        let (_kind, unpacked, packed) = (compact.next_i32()?, compact.next_i32()?, compact.next_i32()?);
        compact.fields(PAGE_HEADER, 3)?;
        let bytes = |number: i64| i32::try_from(number).ok().and_then(|number| u64::try_from(number).ok());
        Some(Self { length: compact.position() as u64, packed: bytes(packed)?, unpacked: bytes(unpacked)? })
    }
}

/// The error of a file that cannot be as it says.
pub(super) fn damaged(why: &str) -> ParquetError {
    ParquetError::General(why.to_owned())
}

fn not_parquet() -> ParquetError {
    damaged("it does not end as a Parquet file does")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_how_long_the_page_is() {
        let header = [0x15, 0x00, 0x15, 0x90, 0x03, 0x15, 0x64, 0x2c, 0x15, 0x04, 0x15, 0x00, 0x00, 0x00];
        let read = PageHeader::read(&[&header[..], b"the page"].concat()).unwrap();
        assert_eq!(read, PageHeader { length: header.len() as u64, packed: 50, unpacked: 200 });
        let negative = [0x15, 0x00, 0x15, 0x03, 0x15, 0x64, 0x00];
        let too_large = [0x15, 0x00, 0x15, 0x80, 0x80, 0x80, 0x80, 0x20, 0x15, 0x64, 0x00];
        let other_order = [0x25, 0x03, 0x15, 0x64, 0x00];
        for header in [&negative[..], &too_large, &other_order, &header[..9], &[]] {
            assert!(PageHeader::read(header).is_err(), "{header:?}");
        }
    }

    #[test]
    fn more_places_of_pages_than_bytes_are_not_read() {
        let places = [0x19, 0x1c, 0x16, 0x08, 0x15, 0x64, 0x16, 0x00, 0x00, 0x00];
        assert_eq!(page_locations(&places).unwrap().len(), 1);
        let claimed = [&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07][..], &places[2..]].concat();
        assert!(page_locations(&claimed).unwrap_err().to_string().contains("places of its pages"));
    }
}
