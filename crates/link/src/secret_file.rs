//! Files that settings name; one with a secret may be replaced while the process runs.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use types::Secret;

/// Time for which a secret is used before its file is read again.
const REREAD_INTERVAL: Duration = Duration::from_secs(1);

/// Reasons why a file has no text or no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// It cannot be read.
    #[error("cannot read `{}`: check that it exists and who may use it", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is empty.
    #[error("the file `{}` is empty: write the password or API key to it", path.display())]
    Empty {
        /// The path of the file.
        path: PathBuf,
    },
}

/// Reads a secret again as it is used, so that it can be replaced while the process runs.
#[derive(Clone)]
pub struct SecretFile {
    /// None for a secret that is a setting itself.
    path: Option<PathBuf>,
    last: Arc<Mutex<Last>>,
}

/// Result of the last attempt to read the file.
struct Last {
    when: Instant,
    secret: Secret,
    /// True if the file could be read, and has this secret.
    is_current: bool,
}

impl SecretFile {
    /// Reads the file for the first time.
    pub fn open(path: &Path) -> Result<Self, SecretFileError> {
        Ok(Self::with(Some(path.to_owned()), read_secret(path)?))
    }

    /// A secret that is in no file.
    pub fn given(secret: Secret) -> Self {
        Self::with(None, secret)
    }

    fn with(path: Option<PathBuf>, secret: Secret) -> Self {
        let last = Last { when: Instant::now(), secret, is_current: true };
        Self { path, last: Arc::new(Mutex::new(last)) }
    }

    /// Returns the secret, from when the file could last be read: to log in somewhere.
    pub fn current(&self) -> Secret {
        self.read_again().secret.clone()
    }

    /// Returns the secret, to compare with a credential that others bring. `None` while the file cannot be read,
    /// because the secret that it had may have been revoked.
    pub fn verified(&self) -> Option<Secret> {
        let last = self.read_again();
        last.is_current.then(|| last.secret.clone())
    }

    /// Reads the file if it was not read just before.
    fn read_again(&self) -> MutexGuard<'_, Last> {
        let mut last = self.last.lock();
        let Some(path) = self.path.as_ref().filter(|_| last.when.elapsed() >= REREAD_INTERVAL) else { return last };
        last.when = Instant::now();
        match read_secret(path) {
            Ok(secret) => (last.secret, last.is_current) = (secret, true),
            Err(error) => {
                if last.is_current {
                    tracing::warn!(%error, "cannot read a secret again");
                }
                last.is_current = false;
            }
        }
        last
    }
}

/// Reads a file.
pub fn read(path: &Path) -> Result<String, SecretFileError> {
    fs::read_to_string(path).map_err(|source| SecretFileError::Unreadable { path: path.to_owned(), source })
}

/// Reads a file that holds one line with a secret. An empty one may be about to be written.
pub fn read_secret(path: &Path) -> Result<Secret, SecretFileError> {
    match read(path)?.trim() {
        "" => Err(SecretFileError::Empty { path: path.to_owned() }),
        secret => Ok(Secret::new(secret)),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_secret_that_was_replaced_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        fs::write(&path, "old\n").unwrap();
        let file = SecretFile::open(&path).unwrap();
        for secret in ["old", "new"] {
            fs::write(&path, secret).unwrap();
            advance(REREAD_INTERVAL).await;
            assert_eq!((file.current().expose(), file.verified().unwrap().expose()), (secret, secret));
        }
        // A file that is being replaced is empty, or gone, for a moment.
        fs::write(&path, "\n").unwrap();
        advance(REREAD_INTERVAL).await;
        assert_eq!((file.current().expose(), file.verified().is_none()), ("new", true));
        assert!(matches!(SecretFile::open(&path), Err(SecretFileError::Empty { .. })));
        fs::remove_file(&path).unwrap();
        advance(REREAD_INTERVAL).await;
        assert_eq!((file.current().expose(), file.verified().is_none()), ("new", true));
        fs::write(&path, "newest").unwrap();
        advance(REREAD_INTERVAL).await;
        assert_eq!((file.current().expose(), file.verified().unwrap().expose()), ("newest", "newest"));
    }
}
