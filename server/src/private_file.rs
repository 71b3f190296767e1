//! Files that hold a key: whole or not there, and for their owner alone.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// Writes a file that is complete or not there, and that only its owner can read from the first byte on.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}
