//! Reads parts of a file, or of its end, by several threads at once, none larger than the file.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    os::unix::fs::FileExt,
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    errors::Result,
    file::reader::{ChunkReader, Length},
};

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
    /// What a file has from this position on.
    End(u64, Bytes),
}

impl Chunks {
    /// The parts of a file, whose length is what it is now.
    pub fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { source: Source::File(Arc::new(file)), bytes })
    }

    /// The parts of the end of a file of this length. Others cannot be read.
    pub(crate) fn end(end: Bytes, bytes: u64) -> Self {
        Self { source: Source::End(bytes.saturating_sub(end.len() as u64), end), bytes }
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
            Self::End(start, end) => {
                let offset = position.checked_sub(*start).and_then(|offset| usize::try_from(offset).ok());
                let rest = offset.and_then(|offset| end.get(offset..));
                rest.ok_or(io::ErrorKind::UnexpectedEof)?.read(buffer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_end_of_a_file_only_that_is_read() {
        let end = Chunks::end(Bytes::from_static(b"end"), 10);
        assert_eq!(end.get_bytes(7, 3).unwrap(), "end");
        assert_eq!(end.get_bytes(8, 1).unwrap(), "n");
        for (start, length) in [(6, 2), (0, 1), (8, 3), (10, 1), (7, usize::MAX)] {
            assert!(end.get_bytes(start, length).is_err(), "{start} {length}");
        }
        let mut text = String::new();
        end.get_read(8).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "nd");
    }
}
