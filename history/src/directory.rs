//! Directories that several processes change: what is in them, and changes that last.

pub(crate) mod removed;

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::Error;

/// The file that is locked while sealed files are changed.
pub(crate) const LOCK: &str = "lock";

/// The right to change sealed files, which one process has at a time.
pub(crate) struct Change {
    _lock: File,
}

impl Change {
    /// Waits for it.
    pub(crate) fn take(root: &Path) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(Error::file("create", root))?;
        let path = root.join(LOCK);
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(Error::file("open", &path))?;
        lock.lock().map_err(Error::file("lock", &path))?;
        Ok(Self { _lock: lock })
    }
}

/// Extension of the names of small files while they are written, before they replace others.
pub(crate) const NEW: &str = "new";

/// The paths in a directory, in order.
pub(crate) fn list(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(dir).map_err(Error::file("list", dir))?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(Error::file("list", dir))?;
    paths.sort();
    Ok(paths)
}

/// Turns the error of a missing file or directory into an empty result.
pub(crate) fn if_there<T: Default>(result: Result<T, Error>) -> Result<T, Error> {
    match result {
        Err(error) if error.is_gone() => Ok(T::default()),
        result => result,
    }
}

/// Deletes a file, which others may have deleted.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    if_there(fs::remove_file(path).map_err(Error::file("delete", path)))
}

/// Writes a file that is there as a whole or not at all, also after a power cut.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Error> {
    let unfinished = path.with_added_extension(NEW);
    fs::write(&unfinished, text).map_err(Error::file("write", &unfinished))?;
    File::open(&unfinished).and_then(|file| file.sync_all()).map_err(Error::file("sync", &unfinished))?;
    fs::rename(&unfinished, path).map_err(Error::file("rename", &unfinished))?;
    path.parent().map_or(Ok(()), sync)
}

/// Makes the names in a directory, or the contents of a file, last.
pub(crate) fn sync(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::file("sync", path))
}

/// Number of paths from which one sync of their file system costs less than one of each.
const PATHS_MIN: usize = 32;

/// Makes the names in directories, or the contents of files, last.
pub(crate) fn sync_each(paths: &[&Path]) -> Result<(), Error> {
    match paths {
        [first, ..] if paths.len() >= PATHS_MIN && reports_failures() && are_on_one_device(paths)? => {
            let synced = File::open(first).and_then(|file| rustix::fs::syncfs(file).map_err(io::Error::from));
            synced.map_err(Error::file("sync", first))
        }
        paths => paths.iter().try_for_each(|path| sync(path)),
    }
}

/// Returns true if the sync of a file system reports failures, as it does since Linux 5.8.
fn reports_failures() -> bool {
    let system = rustix::system::uname();
    let mut numbers = system.release().to_str().unwrap_or_default().split('.').map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (5, 8))
}

fn are_on_one_device(paths: &[&Path]) -> Result<bool, Error> {
    let device = |path: &&Path| Ok(fs::metadata(path).map_err(Error::file("read", path))?.dev());
    let devices: Vec<_> = paths.iter().map(device).collect::<Result<_, Error>>()?;
    Ok(devices.iter().all(|device| Some(device) == devices.first()))
}
