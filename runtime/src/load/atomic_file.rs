//! Atomic file writes, and the removal of temporary files that a killed process left behind.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File};
use std::io::{self, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Prefix and suffix of a temporary file.
const PREFIX: &str = ".airlock-";
pub(crate) const SUFFIX: &str = "new";

/// Writes a temporary file next to `path` that only the user may read. Persisting it replaces `path` atomically.
pub(crate) fn write(path: &Path, parts: &[&[u8]]) -> io::Result<NamedTempFile> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = Builder::new().prefix(PREFIX).suffix(&format!(".{SUFFIX}")).tempfile_in(dir)?;
    // The lock tells other processes that the file is in use. A file system without locks finds no file abandoned
    // either.
    let _ = file.as_file().try_lock();
    parts.iter().try_for_each(|part| file.write_all(part))?;
    Ok(file)
}

/// Removes the temporary files in `dir` that no process holds a lock on.
pub(crate) fn remove_abandoned(dir: &Path) {
    // A directory that cannot be read is reported when it is used.
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let ours =
        |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file()) && is_temporary(&entry.file_name());
    for path in entries.filter(ours).map(|entry| entry.path()) {
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok()
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "cannot remove an abandoned temporary file");
        }
    }
}

/// Returns true if [`write`] made this name; the directory may hold files of the user too.
fn is_temporary(name: &OsStr) -> bool {
    let middle = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.strip_suffix('.'));
    middle.is_some_and(|middle| middle.len() == 6 && middle.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn two_writers_of_one_file_use_different_temporary_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.wasm");
        let (one, two) = (write(&path, &[b"on", b"e"]).unwrap(), write(&path, &[b"two"]).unwrap());
        one.persist(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        two.persist(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(dir.path()), ["a.wasm"]);
    }

    #[test]
    fn only_abandoned_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let writing = write(&dir.path().join("a"), &[b"half"]).unwrap();
        let others = [".airlock-.new", ".airlock-a-b.12.new", "b.new", "c.wasm"];
        for name in [&others[..], &[".airlock-aB3dE6.new", ".airlock-000000.new"]].concat() {
            fs::write(dir.path().join(name), b"half").unwrap();
        }
        fs::create_dir(dir.path().join(".airlock-dir.new")).unwrap();
        remove_abandoned(dir.path());
        let left: Vec<_> = names(dir.path())
            .into_iter()
            .filter(|name| Path::new(name) != writing.path().file_name().unwrap())
            .collect();
        assert!(writing.path().exists());
        assert_eq!(left, [others[0], others[1], ".airlock-dir.new", others[2], others[3]]);
    }
}
