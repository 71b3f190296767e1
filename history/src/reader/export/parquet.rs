//! Records as one Parquet file, which need not be in memory as a whole.

use std::{io, mem};

use crate::{
    Record,
    sealed::write::{FileWriter, end_file, into_io, new_writer, sort, write_groups},
};

/// A file that grows by row groups, of which those that were handed out are forgotten.
pub(super) struct ParquetFile(FileWriter<Vec<u8>>);

/// Number of devices that the filter of a row group has room for.
const DEVICES: u64 = 10_000;

impl ParquetFile {
    pub(super) fn new() -> io::Result<Self> {
        new_writer(Vec::new(), DEVICES, usize::MAX).map(Self).map_err(into_io)
    }

    pub(super) fn write(&mut self, records: &[Record]) -> io::Result<Vec<u8>> {
        let rows = sort(&records.iter().collect::<Vec<_>>());
        write_groups(&mut self.0, &rows).map_err(into_io)?;
        self.taken()
    }

    /// Ends the file, into which at most so many records came from files without checksums.
    pub(super) fn end(self, unchecked: u64) -> io::Result<Vec<u8>> {
        end_file(self.0, unchecked).map_err(into_io)
    }

    /// Takes the bytes written since the last call.
    fn taken(&mut self) -> io::Result<Vec<u8>> {
        self.0.flush()?;
        Ok(mem::take(self.0.inner_mut().get_mut()))
    }
}
