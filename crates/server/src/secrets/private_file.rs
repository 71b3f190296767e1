//! Files that hold a secret: complete or absent, and readable by their owner alone.

use std::{
    io::{self, Write},
    path::Path,
};

use tempfile::NamedTempFile;

/// Writes a file in one step, so that readers and a crash find either the old content or the new.
///
/// Only its owner can read it, from the first byte on. After an error the old content is still there.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    prepare(path, bytes)?.persist(path)?;
    Ok(())
}

/// Like [`write_private`], but fails with [`io::ErrorKind::AlreadyExists`] when the file is there.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    prepare(path, bytes)?.persist_noclobber(path)?;
    Ok(())
}

/// A temporary file next to `path`; on Unix its mode is 0600.
fn prepare(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let mut file = NamedTempFile::new_in(dir.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}
