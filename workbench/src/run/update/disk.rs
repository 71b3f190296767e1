//! Writes results into files on disk.

use std::{fs, io, path::Path};

use super::{FILE_BYTES_MAX, Updates, Written};
use crate::file::disk::replace;

impl Updates {
    /// Writes the files. What stands around an expectation stays as it is, comments too; a file in which that cannot be
    /// had stays as a whole.
    pub fn write(self) -> Written {
        self.apply(read, replace)
    }
}

fn read(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    fs::read_to_string(path)
}
