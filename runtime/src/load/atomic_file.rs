//! Files that are written beside their place and moved there whole, and what is left of them when a process ends in between.

use std::ffi::OsStr;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The suffix of a file that is being written.
pub(crate) const SUFFIX: &str = "new";
/// The most names that are tried for one file.
const NAMES_MAX: u32 = 1000;

/// A file that has all its bytes and is not in its place yet. It goes where it is dropped before that.
#[derive(Debug)]
pub(crate) struct Beside {
    path: PathBuf,
    /// Held open, because its lock tells others that it is not abandoned.
    file: File,
    is_moved: bool,
}

impl Beside {
    /// Writes a file that only the user may read, under a name of its own next to `place`.
    pub(crate) fn write(place: &Path, parts: &[&[u8]]) -> io::Result<Self> {
        let (path, file) = create(place)?;
        // Where files cannot be locked, nobody finds one abandoned either.
        let _ = file.try_lock();
        let mut beside = Self { path, file, is_moved: false };
        parts.iter().try_for_each(|part| beside.file.write_all(part))?;
        Ok(beside)
    }

    /// Moves it to its place, whatever is there.
    pub(crate) fn replace(mut self, place: &Path) -> io::Result<()> {
        fs::rename(&self.path, place)?;
        self.is_moved = true;
        Ok(())
    }

    /// Puts it in its place unless something is there.
    pub(crate) fn link(self, place: &Path) -> io::Result<()> {
        match fs::hard_link(&self.path, place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.is_moved {
            // It is in nobody's way; what failed before it is what matters.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes from `dir` what processes were writing when they ended: whoever still writes holds a lock on the file.
pub(crate) fn remove_abandoned(dir: &Path) {
    // A folder that cannot be read says so when it is used.
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    // Only files, and only such names as are made here: the folder may be somebody's own.
    let ours = |entry: &DirEntry| entry.file_type().is_ok_and(|sort| sort.is_file()) && is_ours(&entry.file_name());
    for path in entries.filter(ours).map(|entry| entry.path()) {
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok()
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "failed to remove what an earlier process had left");
        }
    }
}

/// Whether a name is one of those that [`create`] makes.
fn is_ours(name: &OsStr) -> bool {
    let mut parts = name.to_str().unwrap_or_default().rsplitn(4, '.');
    let suffix = parts.next() == Some(SUFFIX);
    let numbers = parts.by_ref().take(2).filter(|part| part.parse::<u32>().is_ok()).count();
    suffix && numbers == 2 && parts.next().is_some()
}

/// Creates a file that nobody else has: processes may have the same number where each counts its own.
fn create(place: &Path) -> io::Result<(PathBuf, File)> {
    for number in 0..NAMES_MAX {
        let path = place.with_extension(format!("{}.{number}.{SUFFIX}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (path, file)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
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
    fn two_writers_of_one_file_do_not_meet() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a.wasm");
        let (one, two) = (Beside::write(&place, &[b"on", b"e"]).unwrap(), Beside::write(&place, &[b"two"]).unwrap());
        one.replace(&place).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"one");
        two.replace(&place).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"two");
        assert_eq!(names(dir.path()), ["a.wasm"]);
    }

    #[test]
    fn the_first_of_two_that_link_stays() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("key");
        Beside::write(&place, &[b"one"]).unwrap().link(&place).unwrap();
        Beside::write(&place, &[b"two"]).unwrap().link(&place).unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"one");
        assert_eq!(names(dir.path()), ["key"]);
    }

    #[test]
    fn only_what_is_abandoned_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let writing = Beside::write(&dir.path().join("a"), &[b"half"]).unwrap();
        let others = ["1.0.new", "b.new", "c.wasm", "d.1.x.new"];
        for name in [&others[..], &["b.1.0.new", "guest-0a.b.7.12.new"]].concat() {
            fs::write(dir.path().join(name), b"half").unwrap();
        }
        fs::create_dir(dir.path().join("e.1.0.new")).unwrap();
        remove_abandoned(dir.path());
        let left: Vec<_> =
            names(dir.path()).into_iter().filter(|name| Path::new(name) != writing.path.file_name().unwrap()).collect();
        assert!(writing.path.exists());
        assert_eq!(left, [&others[..], &["e.1.0.new"]].concat());
    }
}
