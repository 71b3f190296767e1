//! Finds the blocks in a file of the tail. Of a file of any size, it has few blocks in memory at once.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use bytes::Bytes;

use crate::{
    Error,
    tail::{
        block::{self, Block, HEADER_BYTES, MAGIC},
        index::Index,
    },
};

/// Maximum size of a file of the tail, and of its records, in bytes. Segments stay far below it; what is larger is not
/// read, because its index and, when it is sealed, its records have to fit into memory.
const FILE_BYTES_MAX: u64 = 512 << 20;
/// Bytes that are read at once, unless a block is longer.
const PART_BYTES: usize = 1 << 20;
/// Bytes of blocks of a file that are checked before the search behind what has changed is given up: whoever wrote it may
/// have put the beginnings of many long blocks there.
pub(super) const CHECKED_BYTES_MAX: u64 = 4 << 30;

/// The blocks of a file.
#[derive(Debug)]
pub(super) struct ScannedBlocks {
    pub(super) index: Index,
    /// Bytes before the last block that have changed; all behind it, if the search there was given up.
    pub(super) changed: u64,
    /// Bytes behind the last block.
    pub(super) rest: u64,
    /// True if these can be the beginning of a block that is being written.
    pub(super) is_begun: bool,
}

/// Finds the whole blocks of a file. An error if it has none and does not begin like one of ours, or is too large.
pub(super) fn find(file: &File, path: &Path) -> Result<ScannedBlocks, Error> {
    find_within(file, path, CHECKED_BYTES_MAX)
}

/// The same, with another bound on the bytes of blocks that are checked.
pub(super) fn find_within(file: &File, path: &Path, checked_max: u64) -> Result<ScannedBlocks, Error> {
    let failed = |source| Error::file("read", path)(source);
    let length = file.metadata().map_err(failed)?.len();
    if length > FILE_BYTES_MAX {
        return Err(too_large(path));
    }
    let mut parts = Parts { file, length, start: 0, part: Bytes::new(), checked: 0, checked_max };
    let (mut index, mut changed) = (Index::default(), 0);
    while let Some((place, block)) = parts.next_block(index.bytes).map_err(failed)? {
        changed += place - index.bytes;
        index.bytes = place;
        index.add(block.writer, block.length, &block.records);
        if index.record_bytes > FILE_BYTES_MAX {
            return Err(too_large(path));
        }
    }
    let start = parts.bytes(index.bytes, HEADER_BYTES).map_err(failed)?;
    if index.blocks.is_empty() && !is_start(&start) {
        return Err(Error::damaged(path, "it does not begin with a block"));
    }
    let rest = length - index.bytes;
    if parts.has_given_up() {
        // Nothing may be cut off.
        index.bytes = length;
        return Ok(ScannedBlocks { index, changed: changed + rest, rest: 0, is_begun: false });
    }
    Ok(ScannedBlocks { index, changed, rest, is_begun: is_begun(&start, rest) })
}

fn too_large(path: &Path) -> Error {
    Error::damaged(path, format!("it is too large: a file of the tail has {} MiB at most", FILE_BYTES_MAX >> 20))
}

/// A file, and the part of it that was read last.
struct Parts<'a> {
    file: &'a File,
    /// Length of the file when it was opened: it may grow.
    length: u64,
    /// The place of the part.
    start: u64,
    part: Bytes,
    /// Bytes of blocks that were checked.
    checked: u64,
    checked_max: u64,
}

impl Parts<'_> {
    /// So many bytes from a place on, or those that there are.
    fn bytes(&mut self, place: u64, length: usize) -> io::Result<Bytes> {
        let length = self.length.saturating_sub(place).min(length as u64) as usize;
        let from = place.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let range = from.map(|from| from..from.saturating_add(length));
        if let Some(range) = range.filter(|range| range.end <= self.part.len()) {
            return Ok(self.part.slice(range));
        }
        let (mut file, mut part) = (self.file, Vec::new());
        file.seek(SeekFrom::Start(place))?;
        file.take(length.max(PART_BYTES) as u64).read_to_end(&mut part)?;
        (self.start, self.part) = (place, part.into());
        Ok(self.part.slice(..length.min(self.part.len())))
    }

    /// The block at a place; none if there is none, or it is not whole.
    fn block_at(&mut self, place: u64) -> io::Result<Option<Block>> {
        let head = self.bytes(place, HEADER_BYTES)?;
        let Some(length) = block::claimed_length(&head) else { return Ok(None) };
        let bytes = self.bytes(place, length)?;
        self.checked += bytes.len() as u64;
        Ok(block::decode(&bytes))
    }

    /// The next block that is whole, and its place. What is before it has changed.
    fn next_block(&mut self, place: u64) -> io::Result<Option<(u64, Block)>> {
        if let Some(block) = self.block_at(place)? {
            return Ok(Some((place, block)));
        }
        let head = self.bytes(place, HEADER_BYTES)?;
        if let Some(length) = block::claimed_length(&head) {
            let end = place + length as u64;
            // It was not written to its end, so that none follows: what looks like some in it, devices have sent.
            if end > self.length {
                return Ok(None);
            }
            if let Some(block) = self.block_at(end)? {
                return Ok(Some((end, block)));
            }
        }
        self.search(place)
    }

    fn search(&mut self, mut place: u64) -> io::Result<Option<(u64, Block)>> {
        loop {
            let part = self.bytes(place, PART_BYTES)?;
            for from in memchr::memmem::find_iter(&part, &MAGIC) {
                let place = place + from as u64;
                if let Some(block) = self.followed_block_at(place)? {
                    return Ok(Some((place, block)));
                }
                if self.has_given_up() {
                    return Ok(None);
                }
            }
            if part.len() < PART_BYTES {
                return Ok(None);
            }
            // One may begin with the last bytes.
            place += (part.len() - MAGIC.len() + 1) as u64;
        }
    }

    /// A device may send what looks like a block. In a block that is not whole, it would be found: it counts only if
    /// what follows it does.
    fn followed_block_at(&mut self, place: u64) -> io::Result<Option<Block>> {
        let Some(block) = self.block_at(place)? else { return Ok(None) };
        let end = place + block.length as u64;
        let is_followed = end == self.length || self.block_at(end)?.is_some();
        Ok(Some(block).filter(|_| is_followed))
    }

    fn has_given_up(&self) -> bool {
        self.checked > self.checked_max
    }
}

/// Returns true if a block of which only so many bytes are written can begin with these bytes.
fn is_begun(start: &[u8], written: u64) -> bool {
    let is_longer = |length: usize| length as u64 > written;
    is_start(start) && (start.len() < HEADER_BYTES || block::claimed_length(start).is_some_and(is_longer))
}

/// Returns true if a block, or the first bytes of one, can begin with these bytes.
fn is_start(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())])
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    fn encoded(records: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        block::encode(9, 1, records, &mut Vec::new(), &mut bytes);
        bytes
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn places(found: &ScannedBlocks) -> Vec<(u64, usize)> {
        found.index.blocks.iter().map(|block| (block.offset, block.length)).collect()
    }

    /// The place and the length of each block that is found, and how many bytes have changed.
    fn read(bytes: &[u8]) -> (Vec<(u64, usize)>, u64) {
        let found = find(&file(bytes), Path::new("some-file")).unwrap();
        (places(&found), found.changed)
    }

    #[test]
    fn a_block_in_another_that_is_not_whole_is_no_block() {
        let payload = encoded(b"sent by a device");
        let outer = encoded(&[b"before".as_slice(), &payload, b"after"].concat());
        let (length, last) = (outer.len(), encoded(b"last"));
        let file = [&outer[..], &last].concat();
        assert_eq!(read(&file), (vec![(0, length), (length as u64, last.len())], 0));
        assert_eq!(read(&outer[..length - 1]), (Vec::new(), 0));
        // Also if it does not say any more how long it is.
        for place in [0, 8, 10, length - 1] {
            let mut changed = file.clone();
            changed[place] ^= 1;
            assert_eq!(read(&changed), (vec![(length as u64, last.len())], length as u64), "{place}");
        }
    }

    #[test]
    fn a_block_that_was_written_in_part_has_no_others_in_it_however_many_a_device_sends() {
        let payload = encoded(b"sent by a device").repeat(2);
        let outer = encoded(&[b"before".as_slice(), &payload, b"after"].concat());
        for length in HEADER_BYTES..outer.len() {
            let found = find(&file(&outer[..length]), Path::new("some-file")).unwrap();
            assert_eq!((places(&found), found.rest, found.is_begun), (Vec::new(), length as u64, true), "{length}");
        }
    }

    #[test]
    fn only_what_is_left_of_a_block_may_be_written_later() {
        let block = encoded(b"records");
        for length in 0..block.len() {
            let found = find(&file(&block[..length]), Path::new("some-file")).unwrap();
            assert_eq!((found.rest, found.is_begun), (length as u64, true));
        }
        assert!(!is_begun(&block[..HEADER_BYTES], block.len() as u64));
        assert!(!is_begun(b"AHC1", 4));
    }

    #[test]
    fn blocks_on_both_sides_of_what_has_changed_are_found_wherever_parts_of_the_file_end() {
        let (first, last) = (encoded(b"first"), encoded(b"last"));
        for gap in (PART_BYTES - 40..PART_BYTES + 10).chain([3 * PART_BYTES]) {
            let bytes = [&first[..], &vec![7; gap], &last].concat();
            let end = (first.len() + gap) as u64;
            assert_eq!(read(&bytes), (vec![(0, first.len()), (end, last.len())], gap as u64), "{gap}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_refused_before_it_is_read() {
        let file = file(&encoded(b"records"));
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        match find(&file, Path::new("some-file")) {
            Err(Error::Damaged { source, .. }) => assert!(source.to_string().contains("512 MiB"), "{source}"),
            found => panic!("{found:?}"),
        }
    }

    /// Each of the beginnings says that a long block follows, so that each costs a check of it.
    #[test]
    fn a_search_among_many_beginnings_of_blocks_is_given_up_and_nothing_is_cut_off() {
        let (first, last) = (encoded(b"first"), encoded(b"last"));
        let mut beginning = [0; HEADER_BYTES];
        beginning[..MAGIC.len()].copy_from_slice(&MAGIC);
        beginning[8..16].copy_from_slice([(1_u32 << 14).to_le_bytes(); 2].as_flattened());
        let bytes = [&first[..], b"changed", &beginning.repeat(1000), &last].concat();
        let found = |checked_max| find_within(&file(&bytes), Path::new("some-file"), checked_max).unwrap();
        let all = found(1 << 30);
        assert_eq!((places(&all).len(), all.rest), (2, 0));
        let some = found(1 << 20);
        assert_eq!((places(&some), some.index.bytes, some.rest), (vec![(0, first.len())], bytes.len() as u64, 0));
        assert_eq!(some.changed, (bytes.len() - first.len()) as u64);
    }

    #[test]
    fn a_block_that_claims_to_be_longer_than_any_is_no_block() {
        let mut bytes = encoded(b"records");
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(block::claimed_length(&bytes), None);
        let path = tempfile::NamedTempFile::new().unwrap();
        fs::write(&path, &bytes).unwrap();
        assert_eq!(find(&File::open(&path).unwrap(), path.path()).unwrap().rest, bytes.len() as u64);
    }
}
