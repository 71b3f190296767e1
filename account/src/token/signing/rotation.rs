//! Changing the key that signs.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use types::{Random, Timestamp};

use super::{Signer, entry, key_pair::SigningKey};
use crate::{Account, Error, Result, audit, documents::retried, seal::Keys, token::MACHINE_SECONDS};

/// How long the next key is published before it signs: longer than anybody keeps what they read of the keys.
const PUBLISHED_BEFORE: Duration = Duration::from_secs(3600);
/// How much longer than its last token a key verifies, for clocks that differ.
const LEEWAY: Duration = Duration::from_secs(3600);
/// The most keys at once; each of them is in the key set that everybody reads.
const KEYS_MAX: usize = 16;

/// How the key changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// In an hour; every token stays valid.
    Planned,
    /// At once, because the old keys are in wrong hands: every token that they signed is worthless.
    AtOnce,
}

/// A key as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyInfo {
    /// The `kid` in the tokens that it signs.
    pub id: String,
    /// When it was made.
    pub created: Timestamp,
    /// When it begins to sign.
    pub signs_from: Timestamp,
    /// Whether it signs now.
    pub signs: bool,
}

/// The key pairs in the store, in the order in which they begin to sign. All of them verify.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SigningKeys {
    keys: Vec<SigningKey>,
}

impl SigningKeys {
    /// The first key of all, which signs at once.
    pub(super) fn first(keys: &Keys, random: &dyn Random, now: Timestamp) -> Result<Self> {
        Ok(Self { keys: vec![SigningKey::make(keys, random, now, now)?] })
    }

    /// The keys that may have signed a token that is still valid, or will.
    pub(super) fn alive(&self, now: Timestamp) -> impl Iterator<Item = &SigningKey> {
        let last_token = Duration::from_secs(MACHINE_SECONDS) + LEEWAY;
        let ends = self.keys.iter().skip(1).map(move |next| Some(next.signs_from.plus(last_token)));
        let ends = ends.chain([None]);
        self.keys.iter().zip(ends).filter(move |(_, end)| end.is_none_or(|end| now < end)).map(|(key, _)| key)
    }

    /// Puts the next key behind those that may still be needed, or in the place of all.
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
    /// Makes a new signing key; gives all keys as they are then. The other instances notice within ten seconds.
    ///
    /// An operator's call, not part of any interface. Refused while the last planned key has not begun to sign.
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

    /// All keys that verify, in the order in which they begin to sign.
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
