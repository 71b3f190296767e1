//! Files that settings name, and secrets in them, which may be replaced while a bridge runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use types::Secret;

use crate::Error;

/// A file with a secret.
#[derive(Clone)]
pub(crate) struct SecretFile {
    /// None for a secret that is a setting itself.
    path: Option<PathBuf>,
    first: Secret,
}

impl SecretFile {
    /// Reads the file for the first time.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { path: Some(path.to_owned()), first: read_secret(path)? })
    }

    /// A secret that is in no file.
    pub(crate) fn given(secret: Secret) -> Self {
        Self { path: None, first: secret }
    }

    /// What the file has now, or what it had first if it cannot be read.
    pub(crate) fn current(&self) -> Secret {
        let Some(path) = &self.path else { return self.first.clone() };
        read_secret(path).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read a secret again");
            self.first.clone()
        })
    }
}

/// Reads a file that holds one line with a secret. An empty one may be about to be written.
pub(crate) fn read_secret(path: &Path) -> Result<Secret, Error> {
    let text = read(path)?;
    match text.trim() {
        "" => Err(Error::Empty { path: path.to_owned() }),
        secret => Ok(Secret::new(secret)),
    }
}

pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { action: "read", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_was_replaced_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        fs::write(&path, "old\n").unwrap();
        let file = SecretFile::open(&path).unwrap();
        for secret in ["old", "new"] {
            fs::write(&path, secret).unwrap();
            assert_eq!(file.current().expose(), secret);
        }
        // A file that is being replaced is empty, or gone, for a moment.
        fs::write(&path, "\n").unwrap();
        assert_eq!(file.current().expose(), "old");
        assert!(matches!(SecretFile::open(&path), Err(Error::Empty { .. })));
        fs::remove_file(&path).unwrap();
        assert_eq!(file.current().expose(), "old");
    }
}
