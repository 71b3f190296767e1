//! Checksums of all that a file has, block by block, so that damaged bytes are never read as others. Those that Parquet
//! knows are of pages only, and not of indexes, filters and the description at the end.
//!
//! They are in a field of that description which Parquet leaves to such extensions, and which other programs skip.

use std::{
    io::{self, Write},
    mem,
    ops::Range,
};

use bytes::Bytes;
use crc32fast::Hasher;

use crate::tail::varint::put_unsigned;

/// Length of a block in bytes. The last one of a file may be shorter.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// The field's type, a text of any bytes, and its number, 32767, in Thrift's compact protocol.
const FIELD: [u8; 4] = [0x08, 0xfe, 0xff, 0x03];
/// The end of the field: other extensions end in another way.
const TAG: &[u8; 8] = b"airlock1";
/// Length of a checksum, and of other numbers in the field, in bytes.
const NUMBER_BYTES: usize = size_of::<u32>();
/// Length of what is behind the field, in bytes: the end of the description, its length, and four letters.
const TAIL_BYTES: usize = 9;

/// The checksums of a file. All that is before their field is in blocks; the rest has one of its own.
#[derive(Clone, Debug)]
pub(crate) struct Checksums {
    /// One for each block.
    table: Bytes,
    /// Length of all blocks, in bytes.
    covered: u64,
}

/// Writes a file of Parquet, and adds its checksums once it is complete.
pub(crate) struct ChecksumWriter<W> {
    out: W,
    /// The last bytes: those at the end of the file become others.
    held: Vec<u8>,
    table: Vec<u8>,
    block: Hasher,
    /// Length of the block so far.
    block_bytes: u64,
}

impl Checksums {
    /// Finds the checksums in the description of a file, which begins at `start` and is here with all that is behind it.
    /// None in a file of an earlier version, which has none.
    pub(crate) fn find(description: &Bytes, start: u64) -> io::Result<Option<Self>> {
        let Some((rest, tail)) = description.split_last_chunk::<TAIL_BYTES>() else { return Ok(None) };
        let Some(field) = rest.strip_suffix(TAG) else { return Ok(None) };
        let damaged = || invalid("its checksums are damaged");
        let (table, covered) = parse(field, tail, start).ok_or_else(damaged)?;
        Ok(Some(Self { table: description.slice(table), covered }))
    }

    /// Length of what has checksums, in bytes, from the beginning of the file on.
    pub(crate) fn covered(&self) -> u64 {
        self.covered
    }

    /// The bytes of a range, if the blocks that it is in are those that were written. `read` reads these.
    pub(crate) fn checked(
        &self,
        range: Range<u64>,
        read: impl FnOnce(Range<u64>) -> io::Result<Bytes>,
    ) -> io::Result<Bytes> {
        if range.start > range.end || range.end > self.covered {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let first = range.start / BLOCK_BYTES;
        let start = first * BLOCK_BYTES;
        let blocks = read(start..range.end.next_multiple_of(BLOCK_BYTES).min(self.covered))?;
        for (place, block) in (first..).zip(blocks.chunks(BLOCK_BYTES as usize)) {
            if self.checksum(place) != Some(crc32fast::hash(block)) {
                let start = place * BLOCK_BYTES;
                let end = start + block.len() as u64;
                return Err(invalid(&format!("bytes {start} to {end} are not those that were written")));
            }
        }
        Ok(blocks.slice((range.start - start) as usize..(range.end - start) as usize))
    }

    fn checksum(&self, place: u64) -> Option<u32> {
        let start = usize::try_from(place).ok()?.checked_mul(NUMBER_BYTES)?;
        self.table.get(start..)?.first_chunk::<NUMBER_BYTES>().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// Where the table is, and the length of all blocks. None if anything from the field on is not as it was written.
fn parse(field: &[u8], tail: &[u8; TAIL_BYTES], start: u64) -> Option<(Range<usize>, u64)> {
    let (field, checksum) = field.split_last_chunk::<NUMBER_BYTES>()?;
    let (table, count) = field.split_last_chunk::<NUMBER_BYTES>()?;
    let count = u32::from_le_bytes(*count);
    let table_start = table.len().checked_sub(table_bytes(count)?)?;
    let field_start = table_start.checked_sub(head(count)?.len())?;
    let covered = start + field_start as u64;
    let is_whole = u64::from(count) == covered.div_ceil(BLOCK_BYTES)
        && checksum_of(field.get(field_start..)?, tail) == u32::from_le_bytes(*checksum);
    is_whole.then_some((table_start..table.len(), covered))
}

fn table_bytes(count: u32) -> Option<usize> {
    usize::try_from(count).ok()?.checked_mul(NUMBER_BYTES)
}

/// The beginning of a field with so many checksums: it says how long the field is.
fn head(count: u32) -> Option<Vec<u8>> {
    // Behind the table are its length and a checksum.
    let bytes = table_bytes(count)?.checked_add(2 * NUMBER_BYTES + TAG.len())?;
    let mut head = FIELD.to_vec();
    put_unsigned(&mut head, bytes as u64);
    Some(head)
}

/// The checksum of a field, without itself, and of what is behind it.
fn checksum_of(field: &[u8], tail: &[u8; TAIL_BYTES]) -> u32 {
    let mut checksum = Hasher::new();
    [field, TAG, tail].iter().for_each(|bytes| checksum.update(bytes));
    checksum.finalize()
}

impl<W: Write> ChecksumWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, held: Vec::new(), table: Vec::new(), block: Hasher::new(), block_bytes: 0 }
    }

    /// Returns the writer below.
    pub(crate) fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Adds the checksums to the description at the end of the file.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if self.block_bytes > 0 {
            self.end_block();
        }
        let end = self.end().ok_or_else(|| invalid("a file of Parquet ends in another way, or is too long"))?;
        self.out.write_all(&end)?;
        Ok(self.out)
    }

    /// The field, and what is behind it. None if what was written has no end to which it can be added.
    fn end(&self) -> Option<Vec<u8>> {
        let [stop, length @ .., b'P', b'A', b'R', b'1'] = *self.held.first_chunk::<TAIL_BYTES>()? else { return None };
        let count = u32::try_from(self.table.len() / NUMBER_BYTES).ok()?;
        let mut end = [&head(count)?[..], &self.table, &count.to_le_bytes()].concat();
        let added = u32::try_from(end.len() + NUMBER_BYTES + TAG.len()).ok()?;
        let [first, second, third, fourth] = u32::from_le_bytes(length).checked_add(added)?.to_le_bytes();
        let tail = [stop, first, second, third, fourth, b'P', b'A', b'R', b'1'];
        let checksum = checksum_of(&end, &tail);
        end.extend_from_slice(&checksum.to_le_bytes());
        end.extend_from_slice(TAG);
        end.extend_from_slice(&tail);
        Some(end)
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let left = (BLOCK_BYTES - self.block_bytes) as usize;
            let (block, rest) = bytes.split_at(left.min(bytes.len()));
            self.block.update(block);
            self.block_bytes += block.len() as u64;
            if self.block_bytes == BLOCK_BYTES {
                self.end_block();
            }
            bytes = rest;
        }
    }

    fn end_block(&mut self) {
        self.block_bytes = 0;
        let checksum = mem::take(&mut self.block).finalize();
        self.table.extend_from_slice(&checksum.to_le_bytes());
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut ready = mem::take(&mut self.held);
        ready.extend_from_slice(bytes);
        self.held = ready.split_off(ready.len().saturating_sub(TAIL_BYTES));
        self.add(&ready);
        self.out.write_all(&ready)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns a file of Parquet with checksums added, for measurements.
pub fn with_checksums(file: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = ChecksumWriter::new(Vec::new());
    // In parts as large as those that the `parquet` crate writes.
    file.chunks(8192).try_for_each(|part| writer.write_all(part))?;
    writer.finish()
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length of a description, without its end.
    const DESCRIPTION_BYTES: usize = 100;

    /// A file with so much before its end, and the same with checksums.
    fn files(bytes: usize) -> [Vec<u8>; 2] {
        let body: Vec<u8> = (0..bytes).map(|place| (place * 7 % 251) as u8).collect();
        let length = DESCRIPTION_BYTES as u32 + 1;
        let plain = [&body[..], &[0], &length.to_le_bytes(), b"PAR1"].concat();
        let mut writer = ChecksumWriter::new(Vec::new());
        plain.chunks(1000).for_each(|part| writer.write_all(part).unwrap());
        let file = writer.finish().unwrap();
        [plain, file]
    }

    fn part(file: &[u8], range: Range<u64>) -> Bytes {
        Bytes::copy_from_slice(&file[range.start as usize..range.end as usize])
    }

    fn find(file: &[u8], description: usize) -> io::Result<Option<Checksums>> {
        Checksums::find(&Bytes::copy_from_slice(&file[description..]), description as u64)
    }

    /// All that has checksums; none if there are none.
    fn read(file: &[u8], description: usize) -> io::Result<Option<Bytes>> {
        let Some(checksums) = find(file, description)? else { return Ok(None) };
        checksums.checked(0..checksums.covered(), |range| Ok(part(file, range))).map(Some)
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        for bytes in [DESCRIPTION_BYTES, 4096, 8191, 8192, 8193] {
            let ([plain, mut file], description) = (files(bytes), bytes - DESCRIPTION_BYTES);
            assert_eq!(read(&file, description).unwrap().unwrap(), plain[..bytes]);
            let length = file[file.len() - 8..].first_chunk().map(|length| u32::from_le_bytes(*length)).unwrap();
            assert_eq!(description + length as usize, file.len() - 8, "the description has the checksums");
            // Without the tag, the rest looks like an unknown field of the description.
            let tag = file.len() - TAIL_BYTES - TAG.len()..file.len() - TAIL_BYTES;
            for place in 0..file.len() {
                file[place] ^= 0x10;
                let read = read(&file, description);
                let is_noticed = if tag.contains(&place) { matches!(read, Ok(None)) } else { read.is_err() };
                assert!(is_noticed, "{place} of {}: {read:?}", file.len());
                file[place] ^= 0x10;
            }
        }
    }

    #[test]
    fn only_the_blocks_of_a_range_are_read_and_checked() {
        let [_, mut file] = files(10_000);
        let checksums = find(&file, 9900).unwrap().unwrap();
        file[4095] ^= 1;
        file[8192] ^= 1;
        let read = |range: Range<u64>| {
            let mut asked = 0..0;
            let bytes = checksums.checked(range, |blocks| {
                asked = blocks.clone();
                Ok(part(&file, blocks))
            });
            (bytes, asked)
        };
        let (bytes, asked) = read(5000..5003);
        assert_eq!((bytes.unwrap(), asked), (part(&file, 5000..5003), 4096..8192));
        let (bytes, asked) = read(4095..4097);
        assert_eq!(bytes.unwrap_err().to_string(), "bytes 0 to 4096 are not those that were written");
        assert_eq!(asked, 0..8192);
        let (bytes, asked) = read(8191..10_000);
        assert_eq!(bytes.unwrap_err().to_string(), "bytes 8192 to 10000 are not those that were written");
        assert_eq!(asked, 4096..10_000);
        // The checksums themselves are no part of what is read.
        assert!(read(9999..10_001).0.is_err());
    }

    #[test]
    fn a_file_without_checksums_has_none_and_one_that_is_cut_short_cannot_get_them() {
        let [plain, file] = files(5000);
        assert!(find(&plain, 4900).unwrap().is_none());
        assert!(find(&file[..4999], 4995).unwrap().is_none());
        let mut writer = ChecksumWriter::new(Vec::new());
        writer.write_all(&plain[..5003]).unwrap();
        assert!(writer.finish().is_err());
    }
}
