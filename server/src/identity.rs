//! The key pair of a component, created on the first start in a file next to the certificate.

use std::{fs, io, path::Path};

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::{Error, private_file::write_private};

/// The public key of a component, ECDSA over P-256.
///
/// Nothing is signed with the private key yet; messages to network brokers will be.
#[derive(Clone, Debug)]
pub struct Identity {
    public_key_pem: String,
}

impl Identity {
    /// Reads the key pair from a file; creates a missing file.
    pub fn load_or_create(path: &Path) -> Result<Self, Error> {
        let failed = |action| move |source| Error::File { action, path: path.into(), source };
        let refused = |source| Error::Identity { path: path.into(), source };
        let pair = match fs::read_to_string(path) {
            Ok(text) => KeyPair::from_pem_and_sign_algo(&text, &PKCS_ECDSA_P256_SHA256).map_err(refused)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(refused)?;
                write_private(path, pair.serialize_pem().replace("\r\n", "\n").as_bytes()).map_err(failed("write"))?;
                pair
            }
            Err(error) => return Err(failed("read")(error)),
        };
        Ok(Self { public_key_pem: pair.public_key_pem().replace("\r\n", "\n") })
    }

    /// The public key as PEM, for the announcement.
    pub fn public_key_pem(&self) -> &str {
        &self.public_key_pem
    }
}
