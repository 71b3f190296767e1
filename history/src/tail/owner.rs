//! Directories of the tail: each belongs to one process at a time, by a lock that the system takes back when it ends.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use crate::{Error, directory::list};

/// The file that is locked.
const LOCK: &str = "lock";

/// A directory of the tail that no other process uses.
#[derive(Debug)]
pub(crate) struct OwnDir {
    pub(crate) path: PathBuf,
    _lock: File,
}

impl OwnDir {
    /// Takes the directory. None if another process has it.
    fn take(path: PathBuf) -> Result<Option<Self>, Error> {
        fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        let lock_path = path.join(LOCK);
        let lock = File::options().write(true).create(true).truncate(false).open(&lock_path);
        let lock = lock.map_err(Error::file("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { path, _lock: lock })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(source)) => Err(Error::file("lock", &lock_path)(source)),
        }
    }

    /// Takes all directories in `dir` whose processes have ended, and `new` if there are none.
    pub(crate) fn take_all(dir: &Path, new: &str) -> Result<Vec<Self>, Error> {
        fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
        let mut taken = Vec::new();
        for path in list(dir)?.into_iter().filter(|path| path.is_dir()) {
            taken.extend(Self::take(path)?);
        }
        if taken.is_empty() {
            taken.extend(Self::take(dir.join(new))?);
        }
        Ok(taken)
    }

    /// Deletes the directory if it has nothing but the lock.
    pub(crate) fn delete_if_empty(&self) {
        let is_empty = list(&self.path).is_ok_and(|paths| paths.iter().all(|path| path.ends_with(LOCK)));
        if is_empty {
            // It is taken and tried again at the next start if that fails.
            _ = fs::remove_file(self.path.join(LOCK)).and_then(|()| fs::remove_dir(&self.path));
        }
    }
}
