//! Reads pieces of a file that is here, or elsewhere, by several threads at once, none larger than the file. Where there
//! are checksums, no piece is read that is damaged.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    ops::Range,
    os::unix::fs::FileExt,
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    errors::Result,
    file::reader::{ChunkReader, Length},
};

use crate::sealed::{checksums::Checksums, parts::Parts};

/// Length of a file, in bytes, up to which it is read at once: its pages are smaller than blocks.
const SMALL_BYTES: u64 = 64 << 10;

/// Length of what is behind the description of a file, in bytes: the length of that, and four letters.
pub(super) const END_BYTES: u64 = 8;

/// A file of which parts are read without a position of its own, unlike those of `File`.
#[derive(Clone, Debug)]
pub struct Chunks {
    source: ByteSource,
    /// Length of what may be read, in bytes.
    bytes: u64,
    /// None before they are found, in files without, and where all was checked.
    checksums: Option<Checksums>,
    /// True once they are found.
    is_checked: bool,
}

/// Reads a file from a position on.
#[derive(Debug)]
pub struct Following {
    chunks: Chunks,
    position: u64,
}

#[derive(Clone, Debug)]
enum ByteSource {
    File(Arc<File>),
    Parts(Arc<Parts>),
    Memory(Bytes),
}

impl Chunks {
    /// The parts of a file, whose length is what it is now.
    pub fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { source: ByteSource::File(Arc::new(file)), bytes, checksums: None, is_checked: false })
    }

    /// The parts of a file that is elsewhere.
    pub(crate) fn elsewhere(parts: Arc<Parts>) -> Self {
        Self { bytes: parts.bytes(), source: ByteSource::Parts(parts), checksums: None, is_checked: false }
    }

    /// Checks the description at the end of a file now, and what is read from now on, if there are checksums. What is not
    /// covered by them cannot be read any more then.
    pub fn checked(mut self) -> Result<Self> {
        let end = self.bytes.saturating_sub(END_BYTES);
        let length = self.piece(end..self.bytes)?.first_chunk().map_or(0, |length| u32::from_le_bytes(*length));
        let start = end.saturating_sub(length.into());
        if let Some(checksums) = Checksums::find(&self.piece(start..self.bytes)?, start)? {
            self.check(checksums)?;
            self.piece(start..self.bytes)?;
        }
        Ok(self)
    }

    /// Checks what is read from now on. Nothing behind it can be read any more.
    pub(super) fn check(&mut self, checksums: Checksums) -> io::Result<()> {
        self.bytes = checksums.covered();
        self.checksums = Some(checksums);
        self.is_checked = true;
        if self.bytes <= SMALL_BYTES && matches!(self.source, ByteSource::File(_)) {
            self.source = ByteSource::Memory(self.piece(0..self.bytes)?);
            self.checksums = None;
        }
        Ok(())
    }

    /// Returns true if what is read is compared with checksums.
    pub(super) fn is_checked(&self) -> bool {
        self.is_checked
    }

    /// Fetches these ranges, which are about to be read, if the file is elsewhere.
    pub(super) fn need(&self, ranges: impl FnOnce() -> Result<Vec<Range<u64>>>) -> Result<()> {
        match &self.source {
            ByteSource::File(_) | ByteSource::Memory(_) => Ok(()),
            ByteSource::Parts(parts) => Ok(parts.need(&ranges()?)?),
        }
    }

    /// Gives up what was fetched, but not the end of the file.
    pub(super) fn release(&self) {
        if let ByteSource::Parts(parts) = &self.source {
            parts.release();
        }
    }

    fn piece(&self, range: Range<u64>) -> io::Result<Bytes> {
        match &self.checksums {
            Some(checksums) => checksums.checked(range, |blocks| self.source.read(blocks)),
            None => self.source.read(range),
        }
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<Following>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::with_capacity(512, Following { chunks: self.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A length from a damaged file does not become an allocation.
        if length as u64 > self.bytes {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(self.piece(start..start.saturating_add(length as u64))?)
    }
}

impl Read for Following {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.position.saturating_add(buffer.len() as u64).min(self.chunks.bytes);
        let piece = self.chunks.piece(self.position.min(end)..end)?;
        self.position = self.position.max(end);
        let mut rest = &piece[..];
        rest.read(buffer)
    }
}

impl ByteSource {
    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        match self {
            Self::File(file) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                file.read_exact_at(&mut bytes, range.start)?;
                Ok(bytes.into())
            }
            Self::Parts(parts) => parts.read(range),
            Self::Memory(bytes) if range.end <= bytes.len() as u64 => {
                Ok(bytes.slice(range.start as usize..range.end as usize))
            }
            Self::Memory(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_file_elsewhere_only_what_it_has_is_read() {
        let part = |range: &Range<u64>| Bytes::from(vec![7_u8; (range.end - range.start) as usize]);
        let fetch = move |ranges: &[Range<u64>]| Ok(Some(ranges.iter().map(part).collect()));
        let chunks = Chunks::elsewhere(Arc::new(Parts::new(10_000, Box::new(fetch))));
        assert_eq!(chunks.get_bytes(9998, 2).unwrap(), [7, 7][..]);
        for (start, length) in [(9998, 3), (10_000, 1), (u64::MAX, 1), (7, usize::MAX)] {
            assert!(chunks.get_bytes(start, length).is_err(), "{start} {length}");
        }
        let mut rest = Vec::new();
        chunks.get_read(9997).unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(rest, [7; 3]);
    }
}
