//! Reads pieces of a file that is here, or elsewhere, by several threads at once, none larger than the file.

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

use crate::sealed::parts::Parts;

/// A file of which parts are read without a position of its own, unlike those of `File`.
#[derive(Clone, Debug)]
pub struct Chunks {
    source: Source,
    bytes: u64,
}

/// Reads a file from a position on.
#[derive(Debug)]
pub struct Following {
    source: Source,
    position: u64,
}

#[derive(Clone, Debug)]
enum Source {
    File(Arc<File>),
    Parts(Arc<Parts>),
}

impl Chunks {
    /// The parts of a file, whose length is what it is now.
    pub fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { source: Source::File(Arc::new(file)), bytes })
    }

    /// The parts of a file that is elsewhere.
    pub(crate) fn elsewhere(parts: Arc<Parts>) -> Self {
        Self { bytes: parts.bytes(), source: Source::Parts(parts) }
    }

    /// Fetches these ranges, which are about to be read, if the file is elsewhere.
    pub(super) fn need(&self, ranges: impl FnOnce() -> Result<Vec<Range<u64>>>) -> Result<()> {
        match &self.source {
            Source::File(_) => Ok(()),
            Source::Parts(parts) => Ok(parts.need(&ranges()?)?),
        }
    }

    /// Gives up what was fetched, but not the end of the file.
    pub(super) fn release(&self) {
        if let Source::Parts(parts) = &self.source {
            parts.release();
        }
    }

    fn following(&self, start: u64) -> Following {
        Following { source: self.source.clone(), position: start }
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
        Ok(BufReader::with_capacity(512, self.following(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A length from a damaged file does not become an allocation.
        if length as u64 > self.bytes {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if let Source::Parts(parts) = &self.source {
            return Ok(parts.read(start..start.saturating_add(length as u64))?);
        }
        let mut bytes = vec![0; length];
        self.following(start).read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

impl Read for Following {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read_at(buffer, self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}

impl Source {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read_at(buffer, position),
            Self::Parts(parts) => {
                let end = position.saturating_add(buffer.len() as u64).min(parts.bytes());
                let part = parts.read(position.min(end)..end)?;
                let mut rest = &part[..];
                rest.read(buffer)
            }
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
