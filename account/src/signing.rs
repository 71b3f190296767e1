//! The key pairs that sign tokens, and what others need to verify them.

use std::sync::Arc;

use aws_lc_rs::{
    encoding::AsDer,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, JwkSet, KeyAlgorithm, PublicKeyUse, ThumbprintHash},
};
use serde::{Deserialize, Serialize};
use server::auth::Verifier;
use store::{Key, Tag};
use types::{Claims, Random, Secret, Timestamp};

use crate::{
    Error, Result,
    document::Documents,
    seal::{Keys, Sealed},
};

/// What seals belong to.
const PLACE: &str = "signing key";

/// Signs tokens, and knows what verifies them.
#[derive(Clone)]
pub(crate) struct Signer {
    header: Arc<Header>,
    key: Arc<EncodingKey>,
    verifier: Arc<Verifier>,
    published: Arc<Published>,
}

/// What everybody may know: how to verify the tokens.
#[derive(Debug)]
pub(crate) struct Published {
    /// The public key that signs now, as PEM.
    pub(crate) pem: String,
    /// All public keys that verify.
    pub(crate) jwks: JwkSet,
}

/// The key pairs in the store. The first one signs; all of them verify.
#[derive(Debug, Serialize, Deserialize)]
struct SigningKeys {
    keys: Vec<SigningKey>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SigningKey {
    created: Timestamp,
    pkcs8: Sealed,
}

impl Signer {
    /// Takes the key pairs from the store; makes the first one when there is none.
    pub(crate) async fn open(
        issuer: &str,
        documents: &Documents,
        keys: &Keys,
        random: &dyn Random,
        now: Timestamp,
    ) -> Result<Self> {
        let entry = Key::new(&Tag::named("k", "signing")?, "keys")?;
        loop {
            if let Some(stored) = documents.read::<SigningKeys>(&entry).await? {
                return Self::new(issuer, &stored.value, keys);
            }
            let first = SigningKeys { keys: vec![SigningKey::make(keys, random, now)?] };
            // Several instances may start at once: whoever is first decides, the others read it.
            if documents.create(&entry, &first).await? {
                return Self::new(issuer, &first, keys);
            }
        }
    }

    /// Signs a token.
    pub(crate) fn sign(&self, claims: &Claims) -> Result<Secret> {
        let token = jsonwebtoken::encode(&self.header, claims, &self.key).map_err(|_| Error::Crypto("sign a token"))?;
        Ok(Secret::new(token))
    }

    /// The claims of a token that this service signed and that is valid at `now`.
    pub(crate) fn verify(&self, token: &Secret, now: Timestamp) -> Result<Claims> {
        Ok(self.verifier.verify(token.expose(), now).map_err(server::auth::AuthError::from)?)
    }

    /// What verifies the tokens.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    fn new(issuer: &str, stored: &SigningKeys, keys: &Keys) -> Result<Self> {
        let pairs = stored.keys.iter().map(|key| key.open(keys)).collect::<Result<Vec<_>>>()?;
        let jwks = JwkSet { keys: pairs.iter().map(|pair| pair.public.clone()).collect() };
        let verifier = Verifier::new(issuer, &jwks);
        let pair = pairs.into_iter().next().ok_or(Error::Crypto("find a signing key in the store"))?;
        let header = Header { kid: pair.public.common.key_id.clone(), ..Header::new(Algorithm::ES256) };
        Ok(Self {
            header: Arc::new(header),
            key: Arc::new(pair.private),
            verifier: Arc::new(verifier),
            published: Arc::new(Published { pem: pair.pem, jwks }),
        })
    }
}

/// A key pair that is ready for use.
struct Pair {
    private: EncodingKey,
    public: Jwk,
    pem: String,
}

impl SigningKey {
    fn make(keys: &Keys, random: &dyn Random, created: Timestamp) -> Result<Self> {
        // The library takes its randomness from the machine alone; a key that a test could choose would be no key.
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| Error::Crypto("make a signing key"))?;
        Ok(Self { created, pkcs8: keys.seal(PLACE, pkcs8.as_ref(), random)? })
    }

    fn open(&self, keys: &Keys) -> Result<Pair> {
        let broken = || Error::Crypto("use a signing key of the store");
        let pkcs8 = keys.unseal("signing key", PLACE, &self.pkcs8)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8).map_err(|_| broken())?;
        let spki = pair.public_key().as_der().map_err(|_| broken())?;
        let private = EncodingKey::from_ec_der(&pkcs8);
        let mut public = Jwk::from_encoding_key(&private, Algorithm::ES256).map_err(|_| broken())?;
        public.common.key_id = Some(public.thumbprint(ThumbprintHash::SHA256).map_err(|_| broken())?);
        public.common.key_algorithm = Some(KeyAlgorithm::ES256);
        public.common.public_key_use = Some(PublicKeyUse::Signature);
        Ok(Pair { private, public, pem: pem(spki.as_ref()) })
    }
}

fn pem(spki: &[u8]) -> String {
    let text = STANDARD.encode(spki);
    let lines: String = text.as_bytes().chunks(64).map(|line| format!("{}\n", String::from_utf8_lossy(line))).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{lines}-----END PUBLIC KEY-----\n")
}
