//! Directories that several processes change: what is in them, and changes that last.

pub(crate) mod removed;

use std::{
    fs::{self, DirBuilder, File},
    os::unix::fs::{DirBuilderExt, MetadataExt},
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
        create(root)?;
        let path = root.join(LOCK);
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(Error::file("open", &path))?;
        lock.lock().map_err(Error::file("lock", &path))?;
        Ok(Self { _lock: lock })
    }
}

/// Creates the directory, unless it is there. Only its owner may read it: records may have secrets.
pub(crate) fn create(root: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(Error::file("create", root))
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
///
/// `opened` is a file of theirs from before they were written: one that is opened later does not learn of failures that
/// another program has been told of meanwhile.
pub(crate) fn sync_each(opened: &File, paths: &[&Path]) -> Result<(), Error> {
    match paths {
        [first, ..] if paths.len() >= PATHS_MIN && syncs_as_a_whole(opened) && have_device_of(opened, paths) => {
            rustix::fs::syncfs(opened).map_err(|error| Error::file("sync", first)(error.into()))
        }
        paths => paths.iter().try_for_each(|path| sync(path)),
    }
}

/// Returns true if one sync makes all of a file system last, and reports failures, as Linux does since 5.8. Others,
/// such as those over a network, in user space, or over another one, sync less than with each file, or report nothing.
fn syncs_as_a_whole(opened: &File) -> bool {
    // ext4, XFS and Btrfs.
    let is_known =
        rustix::fs::fstatfs(opened).is_ok_and(|system| matches!(system.f_type, 0xef53 | 0x5846_5342 | 0x9123_683e));
    let system = rustix::system::uname();
    let mut numbers = system.release().to_str().unwrap_or_default().split('.').map(str::parse::<u32>);
    is_known
        && matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (5, 8))
}

/// False also if one of them cannot be found: its own sync says so.
fn have_device_of(opened: &File, paths: &[&Path]) -> bool {
    let has = |device| paths.iter().all(|path| fs::metadata(path).is_ok_and(|metadata| metadata.dev() == device));
    opened.metadata().is_ok_and(|metadata| has(metadata.dev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_and_of_many_paths_one_that_is_gone_is_not_synced() {
        let dir = tempfile::tempdir().unwrap();
        let opened = File::open(dir.path()).unwrap();
        let paths: Vec<_> = (0..=PATHS_MIN).map(|number| dir.path().join(number.to_string())).collect();
        paths.iter().for_each(|path| fs::write(path, "text").unwrap());
        let paths: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
        for count in [0, 1, PATHS_MIN - 1, PATHS_MIN, PATHS_MIN + 1] {
            sync_each(&opened, &paths[..count]).unwrap();
        }
        assert!(have_device_of(&opened, &paths));
        assert!(!have_device_of(&opened, &[dir.path(), Path::new("/proc")]));
        fs::remove_file(paths[0]).unwrap();
        for count in [1, PATHS_MIN] {
            assert!(sync_each(&opened, &paths[..count]).is_err_and(|error| error.is_gone()));
        }
    }

    #[test]
    fn a_file_system_without_a_disk_is_not_synced_as_a_whole() {
        assert!(!syncs_as_a_whole(&File::open("/proc").unwrap()));
    }
}
