//! Files that the settings of outputs name.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::Error;

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// Checks that certificates are set only with TLS, and a certificate of our own only with its key; or else names the
/// setting to change, and how.
pub(crate) fn check_tls(
    is_tls: bool,
    scheme: &str,
    [ca_certificate, certificate, key]: [&Option<PathBuf>; 3],
) -> Result<(), (&'static str, String)> {
    let has_any = [ca_certificate, certificate, key].into_iter().any(Option::is_some);
    if has_any && !is_tls {
        return Err(("url", format!("must start with {scheme} where certificates are set")));
    }
    if certificate.is_some() != key.is_some() {
        return Err(("key", "must be set together with `certificate`".to_owned()));
    }
    Ok(())
}
