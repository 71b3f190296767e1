//! Signing and verifying tokens.
//!
//! Keys are rotated without invalidating tokens: a new key is published before it signs, and the old one verifies until
//! its last token has expired. All instances reload the keys regularly.

mod key_pair;
mod rotation;

use std::{sync::Arc, time::Duration};

use jsonwebtoken::{Algorithm, Header, jwk::JwkSet};
use parking_lot::RwLock;
use server::auth::Verifier;
use server::status::ErrorChain;
use store::{Key, Tag};
use types::{Claims, Clock, Random, Secret, Timestamp};

use self::key_pair::Pair;
use crate::{Account, Error, Result, documents::Documents, seal::SealingKeys};

pub use self::rotation::{Rotation, SigningKeyInfo};
pub(crate) use self::{key_pair::SigningKey, rotation::SigningKeys};

/// Interval at which an instance reloads the keys.
const RELOAD_INTERVAL: Duration = Duration::from_secs(10);

/// Signs and verifies tokens. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Signer {
    clock: Arc<dyn Clock>,
    state: Arc<RwLock<LoadedKeys>>,
}

struct LoadedKeys {
    ring: Arc<KeyRing>,
    read: Timestamp,
}

/// Key pairs in the order in which they start to sign.
struct KeyRing {
    pairs: Vec<Pair>,
    verifier: Arc<Verifier>,
}

impl Signer {
    /// Loads the key pairs from the store, or creates the first one.
    pub(crate) async fn open(
        issuer: &str,
        documents: &Documents,
        keys: &SealingKeys,
        random: &dyn Random,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let (entry, now) = (entry()?, clock.now());
        loop {
            if let Some(stored) = documents.read::<SigningKeys>(&entry).await? {
                return Self::new(issuer, &stored.value, keys, clock);
            }
            let first = SigningKeys::first(keys, random, now)?;
            // If several instances start at once, the first one to write wins, and the others read its key.
            if documents.create(&entry, &first).await? {
                return Self::new(issuer, &first, keys, clock);
            }
        }
    }

    /// Reloads the keys if it is time to.
    ///
    /// If the store is unavailable, the loaded keys stay in use.
    pub(crate) async fn reload_if_due(&self, documents: &Documents, keys: &SealingKeys) {
        let now = self.clock.now();
        if !self.is_due(now) {
            return;
        }
        let read = async { documents.read::<SigningKeys>(&entry()?).await };
        let reloaded = match read.await {
            Ok(Some(stored)) => self.install(&stored.value, keys, now),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = reloaded {
            tracing::warn!(error = %ErrorChain(&error), "cannot reload the signing keys: using the cached ones");
        }
    }

    pub(crate) fn sign(&self, claims: &Claims) -> Result<Secret> {
        let ring = self.ring();
        let pair = ring.signing(self.clock.now())?;
        let header = Header { kid: pair.public.common.key_id.clone(), ..Header::new(Algorithm::ES256) };
        let token = jsonwebtoken::encode(&header, claims, &pair.private).map_err(|_| Error::Crypto("sign a token"))?;
        Ok(Secret::new(token))
    }

    /// Verifies a token at the time `now`.
    pub(crate) fn verify(&self, token: &Secret, now: Timestamp) -> Result<Claims> {
        Ok(self.ring().verifier.verify(token.expose(), now).map_err(server::auth::AuthError::from)?)
    }

    /// The public key of the current signing key, as PEM.
    pub(crate) fn pem(&self) -> Result<String> {
        Ok(self.ring().signing(self.clock.now())?.pem.clone())
    }

    /// All public keys that verify tokens, starting with the current signing key.
    pub(crate) fn jwks(&self) -> Result<JwkSet> {
        let ring = self.ring();
        let signing = ring.signing(self.clock.now())?.public.clone();
        let others = ring.pairs.iter().map(|pair| &pair.public).filter(|public| **public != signing).cloned();
        Ok(JwkSet { keys: std::iter::once(signing.clone()).chain(others).collect() })
    }

    fn new(issuer: &str, stored: &SigningKeys, keys: &SealingKeys, clock: Arc<dyn Clock>) -> Result<Self> {
        let read = clock.now();
        let verifier = Arc::new(Verifier::new(issuer, &JwkSet { keys: Vec::new() }));
        let ring = Arc::new(KeyRing::new(stored, keys, read, &verifier)?);
        Ok(Self { clock, state: Arc::new(RwLock::new(LoadedKeys { ring, read })) })
    }

    pub(crate) fn install(&self, stored: &SigningKeys, keys: &SealingKeys, now: Timestamp) -> Result<()> {
        let ring = Arc::new(KeyRing::new(stored, keys, now, &self.ring().verifier)?);
        *self.state.write() = LoadedKeys { ring, read: now };
        Ok(())
    }

    /// Returns true if it is time to reload. Only the first caller gets `true`; the others use the loaded keys.
    fn is_due(&self, now: Timestamp) -> bool {
        // Keys from the future were loaded before the clock was set back.
        let due = |state: &LoadedKeys| state.read > now || now.since(state.read) >= RELOAD_INTERVAL;
        if !due(&self.state.read()) {
            return false;
        }
        let mut state = self.state.write();
        let due = due(&state);
        state.read = now;
        due
    }

    fn ring(&self) -> Arc<KeyRing> {
        Arc::clone(&self.state.read().ring)
    }
}

impl Account {
    /// Loads the signing keys again if it is time to, as another instance may have rotated them.
    pub(crate) async fn reload_signing_keys(&self) {
        self.signer.reload_if_due(&self.documents, &self.keys).await;
    }
}

impl KeyRing {
    /// `verifier` is the one before, which stays if the keys do.
    fn new(stored: &SigningKeys, keys: &SealingKeys, now: Timestamp, verifier: &Arc<Verifier>) -> Result<Self> {
        let pairs = stored.unexpired(now).map(|key| key.open(keys)).collect::<Result<Vec<_>>>()?;
        let jwks = JwkSet { keys: pairs.iter().map(|pair| pair.public.clone()).collect() };
        Ok(Self { verifier: verifier.with_keys(&jwks), pairs })
    }

    /// The last key that has started to sign.
    fn signing(&self, now: Timestamp) -> Result<&Pair> {
        let begun = self.pairs.iter().rev().find(|pair| pair.signs_from <= now);
        begun.or(self.pairs.first()).ok_or(Error::Crypto("find a signing key in the store"))
    }
}

pub(crate) fn entry() -> Result<Key> {
    Ok(Key::new(&Tag::named("k", "signing")?, "keys")?)
}
