//! Signs tokens and publishes the keys that verify them.
//!
//! Keys rotate while tokens of the previous one are valid: the next key is published before it is used, and the
//! previous one stays until its last token expires. Every instance checks the store regularly.

mod key_pair;
mod rotation;

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use jsonwebtoken::{Algorithm, Header, jwk::JwkSet};
use server::auth::Verifier;
use store::{Key, Tag};
use types::{Claims, Clock, Random, Secret, Timestamp};

use self::key_pair::Pair;
use crate::{Error, Result, documents::Documents, seal::Keys};

pub(crate) use self::{key_pair::SigningKey, rotation::SigningKeys};
pub use self::rotation::{Rotation, SigningKeyInfo};

/// How long an instance caches the keys.
const KNOWN: Duration = Duration::from_secs(10);

/// Signs and verifies tokens; cheap to clone.
#[derive(Clone)]
pub(crate) struct Signer {
    issuer: Arc<str>,
    clock: Arc<dyn Clock>,
    state: Arc<RwLock<State>>,
}

/// The cached keys.
struct State {
    ring: Arc<KeyRing>,
    read: Timestamp,
}

/// Key pairs that are ready for use, in the order in which they begin to sign.
struct KeyRing {
    pairs: Vec<Pair>,
    verifier: Verifier,
}

impl Signer {
    /// Loads the key pairs from the store; creates the first one if there is none.
    pub(crate) async fn open(
        issuer: &str,
        documents: &Documents,
        keys: &Keys,
        random: &dyn Random,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        let (entry, now) = (entry()?, clock.now());
        loop {
            if let Some(stored) = documents.read::<SigningKeys>(&entry).await? {
                return Self::new(issuer, &stored.value, keys, clock);
            }
            let first = SigningKeys::first(keys, random, now)?;
            // If several instances start at once, the first one decides and the others read its key.
            if documents.create(&entry, &first).await? {
                return Self::new(issuer, &first, keys, clock);
            }
        }
    }

    /// Reloads the keys if they are due.
    ///
    /// While the store is unavailable, the cached keys stay valid.
    pub(crate) async fn renew(&self, documents: &Documents, keys: &Keys) {
        let now = self.clock.now();
        if !self.is_due(now) {
            return;
        }
        let read = async { documents.read::<SigningKeys>(&entry()?).await };
        let renewed = match read.await {
            Ok(Some(stored)) => self.install(&stored.value, keys, now),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = renewed {
            tracing::warn!(%error, "cannot reload the signing keys: using the cached ones");
        }
    }

    /// Signs a token with the current key.
    pub(crate) fn sign(&self, claims: &Claims) -> Result<Secret> {
        let ring = self.ring();
        let pair = ring.signing(self.clock.now())?;
        let header = Header { kid: pair.public.common.key_id.clone(), ..Header::new(Algorithm::ES256) };
        let token = jsonwebtoken::encode(&header, claims, &pair.private).map_err(|_| Error::Crypto("sign a token"))?;
        Ok(Secret::new(token))
    }

    /// Returns the claims of a token that this service signed and that is valid at `now`.
    pub(crate) fn verify(&self, token: &Secret, now: Timestamp) -> Result<Claims> {
        Ok(self.ring().verifier.verify(token.expose(), now).map_err(server::auth::AuthError::from)?)
    }

    /// The current public key, as PEM.
    pub(crate) fn pem(&self) -> Result<String> {
        Ok(self.ring().signing(self.clock.now())?.pem.clone())
    }

    /// All public keys that verify tokens, the current one first.
    pub(crate) fn jwks(&self) -> Result<JwkSet> {
        let ring = self.ring();
        let signing = ring.signing(self.clock.now())?.public.clone();
        let others = ring.pairs.iter().map(|pair| &pair.public).filter(|public| **public != signing).cloned();
        Ok(JwkSet { keys: std::iter::once(signing.clone()).chain(others).collect() })
    }

    fn new(issuer: &str, stored: &SigningKeys, keys: &Keys, clock: Arc<dyn Clock>) -> Result<Self> {
        let read = clock.now();
        let ring = Arc::new(KeyRing::new(issuer, stored, keys, read)?);
        Ok(Self { issuer: issuer.into(), clock, state: Arc::new(RwLock::new(State { ring, read })) })
    }

    /// Uses what was read from now on.
    pub(crate) fn install(&self, stored: &SigningKeys, keys: &Keys, now: Timestamp) -> Result<()> {
        let ring = Arc::new(KeyRing::new(&self.issuer, stored, keys, now)?);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = State { ring, read: now };
        Ok(())
    }

    /// Whether to reload. The first caller is told to do it; others continue.
    fn is_due(&self, now: Timestamp) -> bool {
        let due = |state: &State| now.since(state.read) >= KNOWN;
        if !due(&self.state.read().unwrap_or_else(PoisonError::into_inner)) {
            return false;
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let due = due(&state);
        state.read = now;
        due
    }

    fn ring(&self) -> Arc<KeyRing> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).ring)
    }
}

impl KeyRing {
    fn new(issuer: &str, stored: &SigningKeys, keys: &Keys, now: Timestamp) -> Result<Self> {
        let pairs = stored.alive(now).map(|key| key.open(keys)).collect::<Result<Vec<_>>>()?;
        let jwks = JwkSet { keys: pairs.iter().map(|pair| pair.public.clone()).collect() };
        Ok(Self { pairs, verifier: Verifier::new(issuer, &jwks) })
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
