//! The directory of a bridge: its client id, its imports from the network, how far it has published, and its history.

use std::{
    borrow::Cow,
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use server::private_file::write_private;
use types::Random;

use crate::Error;

const LOCK: &str = "lock";
const CLIENT_ID: &str = "client-id";
const IMPORTED: &str = "imported.json";
const POSITIONS: &str = "positions.json";
const HISTORY: &str = "history";
const APPLICATIONS: &str = "applications";

/// A directory that only its owner may read, and that one process has locked.
pub struct StateDir {
    path: PathBuf,
    _lock: File,
}

impl StateDir {
    /// Opens and locks the directory; creates it if it does not exist.
    pub fn open(path: PathBuf) -> Result<Self, Error> {
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| Error::file(action, path, source)
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed("create", &path))?;
        let lock_path = path.join(LOCK);
        let lock = File::create(&lock_path).map_err(failed("write", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path }),
            Err(TryLockError::Error(source)) => Err(failed("lock", &lock_path)(source)),
        }
    }

    /// The id under which brokers keep this bridge's session; made up on the first start.
    pub fn client_id(&self, random: &dyn Random) -> Result<String, Error> {
        let path = self.path.join(CLIENT_ID);
        match fs::read_to_string(&path) {
            Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::file("read", path, source));
            }
            _ => {}
        }
        let id = format!("airlock-{:016x}", u64::from_be_bytes(random.array()));
        write_private(&path, id.as_bytes()).map_err(|source| Error::file("write", path, source))?;
        tracing::info!(
            client_id = id,
            directory = %self.path.display(),
            "a new client id: brokers keep a session for it, so this directory must stay"
        );
        Ok(id)
    }

    /// The file that says up to when messages have been published.
    pub fn positions(&self) -> PathBuf {
        self.path.join(POSITIONS)
    }

    /// Returns its name, which no other bridge with the same settings has.
    pub fn name(&self) -> Cow<'_, str> {
        self.path.file_name().unwrap_or_default().to_string_lossy()
    }

    /// The directory of what was processed.
    pub fn history(&self) -> PathBuf {
        self.path.join(HISTORY)
    }

    /// The file of the applications that the network is known to have.
    pub fn applications(&self) -> PathBuf {
        self.path.join(APPLICATIONS)
    }

    /// The file of what was imported, which has secrets.
    pub fn imported(&self) -> PathBuf {
        self.path.join(IMPORTED)
    }
}

#[cfg(test)]
mod tests {
    use testing::CountingRandom;

    use super::*;

    #[test]
    fn the_client_id_stays_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let random = CountingRandom::default();
        let first = StateDir::open(dir.path().join("bridge")).unwrap().client_id(&random).unwrap();
        let second = StateDir::open(dir.path().join("bridge")).unwrap().client_id(&random).unwrap();
        assert_eq!(first, second);
    }

    #[test]
    fn two_bridges_cannot_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let _first = StateDir::open(dir.path().to_owned()).unwrap();
        assert!(matches!(StateDir::open(dir.path().to_owned()), Err(Error::Locked { .. })));
    }
}
