//! Reads parts of a file, by several threads at once, none larger than the file.

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
    file: Arc<File>,
    bytes: u64,
}

/// Reads a file from a position on.
#[derive(Debug)]
pub struct Following {
    file: Arc<File>,
    position: u64,
}

impl Chunks {
    /// The parts of a file, whose length is what it is now.
    pub fn new(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), bytes })
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
        Ok(BufReader::with_capacity(512, Following { file: Arc::clone(&self.file), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A length from a damaged file does not become an allocation.
        if length as u64 > self.bytes {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

impl Read for Following {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}
