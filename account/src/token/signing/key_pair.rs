//! Key pairs: generating, sealing and opening them.

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use jsonwebtoken::{
    Algorithm, EncodingKey,
    jwk::{Jwk, KeyAlgorithm, PublicKeyUse, ThumbprintHash},
};
use serde::{Deserialize, Serialize};
use types::{Random, Timestamp};

use crate::{
    Error, Result,
    seal::{Sealed, SealingKeys},
};

/// The associated data of sealed keys.
const AAD: &str = "signing key";

/// A sealed key pair, as stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SigningKey {
    pub(super) created: Timestamp,
    /// Time when it starts to sign.
    #[serde(default)]
    pub(super) signs_from: Timestamp,
    pkcs8: Sealed,
}

/// An opened key pair.
pub(super) struct Pair {
    pub(super) created: Timestamp,
    pub(super) signs_from: Timestamp,
    pub(super) private: EncodingKey,
    pub(super) public: Jwk,
    pub(super) pem: String,
}

impl SigningKey {
    pub(crate) fn make(
        keys: &SealingKeys,
        random: &dyn Random,
        created: Timestamp,
        signs_from: Timestamp,
    ) -> Result<Self> {
        // The crypto library takes randomness from the operating system only.
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| Error::Crypto("make a signing key"))?;
        Ok(Self { created, signs_from, pkcs8: keys.seal(AAD, pkcs8.as_ref(), random)? })
    }

    pub(super) fn open(&self, keys: &SealingKeys) -> Result<Pair> {
        let broken = || Error::Crypto("use a signing key of the store");
        let pkcs8 = keys.open("signing key", AAD, &self.pkcs8)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8).map_err(|_| broken())?;
        let spki = pair.public_key().as_der().map_err(|_| broken())?;
        let private = EncodingKey::from_ec_der(&pkcs8);
        let mut public = Jwk::from_encoding_key(&private, Algorithm::ES256).map_err(|_| broken())?;
        public.common.key_id = Some(public.thumbprint(ThumbprintHash::SHA256).map_err(|_| broken())?);
        public.common.key_algorithm = Some(KeyAlgorithm::ES256);
        public.common.public_key_use = Some(PublicKeyUse::Signature);
        Ok(Pair { created: self.created, signs_from: self.signs_from, private, public, pem: pem(spki.as_ref()) })
    }
}

impl Pair {
    /// The `kid` in the header of tokens.
    pub(super) fn id(&self) -> &str {
        self.public.common.key_id.as_deref().unwrap_or_default()
    }
}

fn pem(spki: &[u8]) -> String {
    let text = STANDARD.encode(spki);
    let lines: String = text.as_bytes().chunks(64).map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{lines}-----END PUBLIC KEY-----\n")
}
