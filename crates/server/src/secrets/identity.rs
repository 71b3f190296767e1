//! The key pair of a component, created on the first start in a file next to the certificate.

use std::{fmt, fs, io, path::Path};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde::Serialize;
use types::{ComponentId, Secret, Timestamp};

use crate::{Error, secrets::private_file::write_private};

/// Validity of a token before and after its signing, in seconds: as long as in TTN v2.
const TOKEN_VALIDITY_S: u64 = 20;

/// The key pair of a component, ECDSA over P-256. It signs the component's calls to network brokers.
#[derive(Clone)]
pub struct Identity {
    public_key_pem: String,
    signing_key: EncodingKey,
}

#[derive(Serialize)]
struct OwnClaims<'a> {
    iss: &'a str,
    sub: &'a str,
    iat: u64,
    nbf: u64,
    exp: u64,
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
        let signing_key = EncodingKey::from_ec_der(&pair.serialize_der());
        Ok(Self { public_key_pem: pair.public_key_pem().replace("\r\n", "\n"), signing_key })
    }

    /// A token that the component signs itself, valid for a moment; `None` if the crypto library fails.
    pub fn token(&self, id: &ComponentId, now: Timestamp) -> Option<Secret> {
        let (iss, now) = (id.as_str(), now.as_secs());
        let start = now.saturating_sub(TOKEN_VALIDITY_S);
        let claims = OwnClaims { iss, sub: iss, iat: start, nbf: start, exp: now + TOKEN_VALIDITY_S };
        encode(&Header::new(Algorithm::ES256), &claims, &self.signing_key).ok().map(Secret::new)
    }

    /// The public key as PEM, for the announcement.
    pub fn public_key_pem(&self) -> &str {
        &self.public_key_pem
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Identity").field("public_key_pem", &self.public_key_pem).finish_non_exhaustive()
    }
}
