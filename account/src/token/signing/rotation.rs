//! Rotation of the signing key.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use types::{Random, Timestamp};

use super::{Signer, entry, key_pair::SigningKey};
use crate::{Account, Error, Result, audit, documents::retried, seal::Keys, token::MACHINE_SECONDS};

/// How long the next key is published before it signs: longer than anybody caches the key set.
const PUBLISHED_BEFORE: Duration = Duration::from_secs(3600);
/// How long a key verifies after its last token expired, for clock differences.
const LEEWAY: Duration = Duration::from_secs(3600);
/// Maximum number of keys. All of them are in the published key set.
const KEYS_MAX: usize = 16;

/// When to use a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// In an hour. All tokens stay valid.
    Planned,
    /// At once, because old keys may have leaked. All tokens that they signed become invalid.
    AtOnce,
}

/// A signing key, as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyInfo {
    /// The `kid` of tokens that it signs.
    pub id: String,
    /// When it was created.
    pub created: Timestamp,
    /// When it starts to sign.
    pub signs_from: Timestamp,
    /// Whether it is the current key.
    pub signs: bool,
}

/// The key pairs in the store, in the order in which they start to sign. All of them verify.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SigningKeys {
    keys: Vec<SigningKey>,
}

impl SigningKeys {
    /// The very first key, which signs at once.
    pub(super) fn first(keys: &Keys, random: &dyn Random, now: Timestamp) -> Result<Self> {
        Ok(Self { keys: vec![SigningKey::make(keys, random, now, now)?] })
    }

    /// The keys whose tokens may still be valid, and those that sign in future.
    pub(super) fn alive(&self, now: Timestamp) -> impl Iterator<Item = &SigningKey> {
        let last_token = Duration::from_secs(MACHINE_SECONDS) + LEEWAY;
        let ends = self.keys.iter().skip(1).map(move |next| Some(next.signs_from.plus(last_token)));
        let ends = ends.chain([None]);
        self.keys.iter().zip(ends).filter(move |(_, end)| end.is_none_or(|end| now < end)).map(|(key, _)| key)
    }

    /// Appends the next key to those still needed, or replaces them all.
    fn rotate(&mut self, rotation: Rotation, next: SigningKey, now: Timestamp) -> Result<()> {
        self.keys = match rotation {
            Rotation::Planned if self.keys.iter().any(|key| key.signs_from > now) => return Err(Error::KeyWaits),
            Rotation::Planned => self.alive(now).cloned().chain([next]).collect(),
            Rotation::AtOnce => vec![next],
        };
        if self.keys.len() <= KEYS_MAX { Ok(()) } else { Err(Error::KeysVerify { count_max: KEYS_MAX }) }
    }
}

impl Account {
    /// Creates a new signing key; returns all keys. Other instances notice within ten seconds.
    ///
    /// For the operator; not part of any API. Fails while the next key has not started to sign.
    pub async fn rotate_signing_key(&self, rotation: Rotation) -> Result<Vec<SigningKeyInfo>> {
        let attempt = || async {
            let now = self.clock.now();
            let mut stored = self.documents.read::<SigningKeys>(&entry()?).await?.ok_or(Error::Crypto("find a key"))?;
            let signs_from = match rotation {
                Rotation::Planned => now.plus(PUBLISHED_BEFORE),
                Rotation::AtOnce => now,
            };
            let next = SigningKey::make(&self.keys, self.random.as_ref(), now, signs_from)?;
            stored.value.rotate(rotation, next, now)?;
            if !self.documents.replace(&stored).await? {
                return Ok(None);
            }
            self.signer.take(&stored.value, &self.keys, now)?;
            audit::event("signing key rotated", &"operator", &format_args!("{rotation:?}"));
            self.signing_keys().map(Some)
        };
        retried("signing key", attempt).await
    }

    /// All keys that verify, in the order in which they start to sign.
    pub fn signing_keys(&self) -> Result<Vec<SigningKeyInfo>> {
        self.signer.list()
    }
}

impl Signer {
    fn list(&self) -> Result<Vec<SigningKeyInfo>> {
        let ring = self.ring();
        let signing = ring.signing(self.clock.now())?.id().to_owned();
        let info = |pair: &super::Pair| SigningKeyInfo {
            id: pair.id().to_owned(),
            created: pair.created,
            signs_from: pair.signs_from,
            signs: pair.id() == signing,
        };
        Ok(ring.pairs.iter().map(info).collect())
    }
}
