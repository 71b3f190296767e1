//! Files that settings name.

use std::{fs, path::Path};

pub use server::secret_file::{SecretFile, read_secret};

use crate::Error;

/// Reads a file.
pub fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { action: "read", path: path.to_owned(), source })
}
