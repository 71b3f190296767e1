//! Files that the settings of outputs name.

use std::{
    fs,
    path::{Path, PathBuf},
};

use link::{ClientIdentity, Trust};
use tokio_rustls::rustls::ClientConfig;
use types::Secret;

use crate::Error;

/// Reads a file.
fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// Checks that certificates are set only with TLS, and a certificate of our own only with its key; or else names the
/// setting to change, and how. `without_tls` is that for the first.
pub(crate) fn check_tls(
    is_tls: bool,
    without_tls: (&'static str, &'static str),
    [ca_certificate, certificate, key]: [&Option<PathBuf>; 3],
) -> Result<(), (&'static str, &'static str)> {
    let has_any = [ca_certificate, certificate, key].into_iter().any(Option::is_some);
    if has_any && !is_tls {
        return Err(without_tls);
    }
    if certificate.is_some() != key.is_some() {
        return Err(("key", "must be set together with `certificate`"));
    }
    Ok(())
}

/// The TLS of a client with the certificate authority, the certificate and the key in these files.
pub(crate) fn client_tls([ca_certificate, certificate, key]: [&Option<PathBuf>; 3]) -> Result<ClientConfig, Error> {
    let trust = match ca_certificate {
        Some(path) => Trust::Certificate(read(path)?),
        None => Trust::System,
    };
    Ok(match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let (certificate_pem, key_pem) = (read(certificate)?, Secret::new(read(key)?));
            trust.tls_with_identity(&ClientIdentity { certificate_pem, key_pem })
        }
        _ => trust.tls(),
    }?)
}
