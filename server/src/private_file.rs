//! Files that hold a secret: whole or not there, and for their owner alone.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// Writes a file that is complete or not there, and that only its owner can read from the first byte on.
///
/// The error is that of the file system; what was there before stays.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A name of its own, so that two processes that write at once do not finish each other's file.
    let unfinished = path.with_extension(format!("{}.new", std::process::id()));
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}
