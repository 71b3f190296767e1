//! Pieces of a column, whose pages are not larger than those of our files: few bytes can claim to be any number.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parquet::{
    errors::Result,
    file::reader::{ChunkReader, Length},
};

use super::claims::{PageHeader, damaged};
use crate::sealed::chunk::Chunks;

/// Maximum length of a page in bytes, when it is not compressed. Ours end after a MiB and the values of one more row.
const PAGE_BYTES_MAX: u64 = 64 << 20;
/// The same of all pages of a column. Ours have far less: a segment is sealed after some 64 MiB.
const COLUMN_BYTES_MAX: u64 = 1 << 30;
/// Maximum length of the header of a page in bytes. Ours have texts of two values.
const HEADER_BYTES_MAX: u64 = 4096;

/// Pieces of a column, as a reader of pages asks for them.
pub(super) struct PageChunks {
    chunks: Arc<Chunks>,
    /// True if each piece is a page with its header; otherwise the headers were checked before.
    has_pages: bool,
    /// Length in bytes of all pages that may still be read.
    bytes_left: AtomicU64,
}

impl PageChunks {
    /// A column at this place, which claims to be so long when it is not compressed. If it is not known where its pages
    /// are, their headers are read now.
    pub(super) fn new(chunks: &Arc<Chunks>, place: Range<u64>, claimed: i64, has_pages: bool) -> Result<Self> {
        let bytes_left = u64::try_from(claimed).unwrap_or(0).min(COLUMN_BYTES_MAX).into();
        let new = Self { chunks: Arc::clone(chunks), has_pages, bytes_left };
        if !has_pages {
            new.check_all(place)?;
        }
        Ok(new)
    }

    fn check_all(&self, Range { mut start, end }: Range<u64>) -> Result<()> {
        while start < end {
            let header = self.chunks.get_bytes(start, (end - start).min(HEADER_BYTES_MAX) as usize)?;
            let header = PageHeader::read(&header)?;
            self.check(&header)?;
            start = start.saturating_add(header.length + header.packed);
        }
        Ok(())
    }

    fn check(&self, header: &PageHeader) -> Result<()> {
        let take = |left: u64| left.checked_sub(header.unpacked);
        let is_left = self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        let is_possible = is_left && header.unpacked <= PAGE_BYTES_MAX;
        if is_possible { Ok(()) } else { Err(damaged("a page claims to be larger than it can be")) }
    }
}

impl Length for PageChunks {
    fn len(&self) -> u64 {
        self.chunks.len()
    }
}

impl ChunkReader for PageChunks {
    type T = <Chunks as ChunkReader>::T;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        self.chunks.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let piece = self.chunks.get_bytes(start, length)?;
        if self.has_pages {
            self.check(&PageHeader::read(&piece)?)?;
        }
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// The header of a page that has so many bytes, and has this length when it is not compressed.
    fn header(packed: u8, unpacked: u32) -> Vec<u8> {
        let mut header = vec![0x15, 0x00, 0x15];
        let mut zigzag = u64::from(unpacked) * 2;
        while zigzag >= 0x80 {
            header.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        header.extend([zigzag as u8, 0x15, packed * 2, 0x00]);
        header
    }

    /// Reads a column of two pages of 4 bytes, of which the second claims a length.
    fn read(unpacked: u32, claimed: i64) -> [Result<()>; 2] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("column");
        let first = [&header(4, 100)[..], b"1234"].concat();
        let second = [&header(4, unpacked)[..], b"5678"].concat();
        std::fs::write(&path, [&first[..], &second].concat()).unwrap();
        let chunks = Arc::new(Chunks::new(File::open(&path).unwrap()).unwrap());
        let all = 0..chunks.len();
        let unknown = PageChunks::new(&chunks, all.clone(), claimed, false).map(drop);
        let known = PageChunks::new(&chunks, all, claimed, true).unwrap();
        let known = known.get_bytes(0, first.len()).and_then(|_| known.get_bytes(first.len() as u64, second.len()));
        [unknown, known.map(drop)]
    }

    #[test]
    fn pages_are_no_longer_than_the_column_claims_and_than_ours_can_be() {
        assert!(read(200, 300).iter().all(Result::is_ok));
        let page_bytes_max = PAGE_BYTES_MAX as u32;
        assert!(read(page_bytes_max, i64::MAX).iter().all(Result::is_ok));
        for (unpacked, claimed) in [(201, 300), (page_bytes_max + 1, i64::MAX), (i32::MAX as u32, i64::MAX), (1, -1)] {
            for read in read(unpacked, claimed) {
                let error = read.unwrap_err().to_string();
                assert!(error.contains("larger than it can be"), "{unpacked} of {claimed}: {error}");
            }
        }
    }
}
