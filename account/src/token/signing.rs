//! Signing tokens, and what others need to verify them.
//!
//! Keys change while tokens of the last one are still about: the next key is published before it signs, and the last
//! one stays until its last token is over. Every instance looks at the store again after a while.

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

use self::{key_pair::Pair, rotation::SigningKeys};
use crate::{Error, Result, documents::Documents, seal::Keys};

pub use self::rotation::{Rotation, SigningKeyInfo};

/// How long an instance goes on with what it knows of the keys.
const KNOWN: Duration = Duration::from_secs(10);

/// Signs tokens, and knows what verifies them; cheap to clone.
#[derive(Clone)]
pub(crate) struct Signer {
    issuer: Arc<str>,
    clock: Arc<dyn Clock>,
    state: Arc<RwLock<State>>,
}

/// The keys as they were read.
struct State {
    ring: Arc<Ring>,
    read: Timestamp,
}

/// Key pairs that are ready for use, in the order in which they begin to sign.
struct Ring {
    pairs: Vec<Pair>,
    verifier: Verifier,
}

impl Signer {
    /// Takes the key pairs from the store; makes the first one when there is none.
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
            // Several instances may start at once: whoever is first decides, the others read it.
            if documents.create(&entry, &first).await? {
                return Self::new(issuer, &first, keys, clock);
            }
        }
    }

    /// Looks at the store again when it is time to.
    ///
    /// While the store is away, the keys that are known go on counting.
    pub(crate) async fn renew(&self, documents: &Documents, keys: &Keys) {
        let now = self.clock.now();
        if !self.is_due(now) {
            return;
        }
        let read = async { documents.read::<SigningKeys>(&entry()?).await };
        let renewed = match read.await {
            Ok(Some(stored)) => self.take(&stored.value, keys, now),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = renewed {
            tracing::warn!(%error, "cannot read the signing keys again: going on with those that are known");
        }
    }

    /// Signs a token with the key whose turn it is.
    pub(crate) fn sign(&self, claims: &Claims) -> Result<Secret> {
        let ring = self.ring();
        let pair = ring.signing(self.clock.now())?;
        let header = Header { kid: pair.public.common.key_id.clone(), ..Header::new(Algorithm::ES256) };
        let token = jsonwebtoken::encode(&header, claims, &pair.private).map_err(|_| Error::Crypto("sign a token"))?;
        Ok(Secret::new(token))
    }

    /// The claims of a token that this service signed and that is valid at `now`.
    pub(crate) fn verify(&self, token: &Secret, now: Timestamp) -> Result<Claims> {
        Ok(self.ring().verifier.verify(token.expose(), now).map_err(server::auth::AuthError::from)?)
    }

    /// The public key that signs now, as PEM.
    pub(crate) fn pem(&self) -> Result<String> {
        Ok(self.ring().signing(self.clock.now())?.pem.clone())
    }

    /// All public keys that verify, the one that signs now first.
    pub(crate) fn jwks(&self) -> Result<JwkSet> {
        let ring = self.ring();
        let signing = ring.signing(self.clock.now())?.public.clone();
        let others = ring.pairs.iter().map(|pair| &pair.public).filter(|public| **public != signing).cloned();
        Ok(JwkSet { keys: std::iter::once(signing.clone()).chain(others).collect() })
    }

    fn new(issuer: &str, stored: &SigningKeys, keys: &Keys, clock: Arc<dyn Clock>) -> Result<Self> {
        let read = clock.now();
        let ring = Arc::new(Ring::new(issuer, stored, keys, read)?);
        Ok(Self { issuer: issuer.into(), clock, state: Arc::new(RwLock::new(State { ring, read })) })
    }

    /// Uses what was read from now on.
    fn take(&self, stored: &SigningKeys, keys: &Keys, now: Timestamp) -> Result<()> {
        let ring = Arc::new(Ring::new(&self.issuer, stored, keys, now)?);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = State { ring, read: now };
        Ok(())
    }

    /// Whether it is time to read again; who asks first is to do it, the others go on.
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

    fn ring(&self) -> Arc<Ring> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).ring)
    }
}

impl Ring {
    fn new(issuer: &str, stored: &SigningKeys, keys: &Keys, now: Timestamp) -> Result<Self> {
        let pairs = stored.alive(now).map(|key| key.open(keys)).collect::<Result<Vec<_>>>()?;
        let jwks = JwkSet { keys: pairs.iter().map(|pair| pair.public.clone()).collect() };
        Ok(Self { pairs, verifier: Verifier::new(issuer, &jwks) })
    }

    /// The last key whose time to sign has come.
    fn signing(&self, now: Timestamp) -> Result<&Pair> {
        let begun = self.pairs.iter().rev().find(|pair| pair.signs_from <= now);
        begun.or(self.pairs.first()).ok_or(Error::Crypto("find a signing key in the store"))
    }
}

fn entry() -> Result<Key> {
    Ok(Key::new(&Tag::named("k", "signing")?, "keys")?)
}
