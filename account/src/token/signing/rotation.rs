//! Rotation of signing keys.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use types::{Random, Timestamp};

use super::{Signer, key_pair::SigningKey};
use crate::{Error, Result, seal::SealingKeys, token::lifetime::MACHINE_SECONDS};

/// Additional time that a key verifies after its last token expires, for clock skew.
const LEEWAY: Duration = Duration::from_secs(3600);
/// Maximum number of keys. All of them are in the published key set.
const KEYS_MAX: usize = 16;

/// Time when a new key starts to sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// In an hour. All tokens stay valid.
    Planned,
    /// Immediately, because the old keys are compromised. All tokens become invalid.
    AtOnce,
}

/// A signing key, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyInfo {
    /// The `kid` in the header of tokens.
    pub id: String,
    /// Time of creation.
    pub created: Timestamp,
    /// Time when it starts to sign.
    pub signs_from: Timestamp,
    /// True if it is the current signing key.
    pub signs: bool,
}

/// The stored key pairs, in the order in which they start to sign.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SigningKeys {
    keys: Vec<SigningKey>,
}

impl SigningKeys {
    /// The first key, which signs immediately.
    pub(super) fn first(keys: &SealingKeys, random: &dyn Random, now: Timestamp) -> Result<Self> {
        Ok(Self { keys: vec![SigningKey::make(keys, random, now, now)?] })
    }

    /// The keys that may have signed an unexpired token, or will sign in the future.
    pub(super) fn unexpired(&self, now: Timestamp) -> impl Iterator<Item = &SigningKey> {
        let last_token = Duration::from_secs(MACHINE_SECONDS) + LEEWAY;
        let ends = self.keys.iter().skip(1).map(move |next| Some(next.signs_from.plus(last_token)));
        let ends = ends.chain([None]);
        self.keys.iter().zip(ends).filter(move |(_, end)| end.is_none_or(|end| now < end)).map(|(key, _)| key)
    }

    /// Adds the next key to those still needed, or replaces all of them.
    pub(crate) fn rotate(&mut self, rotation: Rotation, next: SigningKey, now: Timestamp) -> Result<()> {
        self.keys = match rotation {
            Rotation::Planned if self.keys.iter().any(|key| key.signs_from > now) => {
                return Err(Error::RotationPending);
            }
            Rotation::Planned => self.unexpired(now).cloned().chain([next]).collect(),
            Rotation::AtOnce => vec![next],
        };
        if self.keys.len() <= KEYS_MAX { Ok(()) } else { Err(Error::TooManySigningKeys { count_max: KEYS_MAX }) }
    }
}

impl Signer {
    pub(crate) fn list(&self) -> Result<Vec<SigningKeyInfo>> {
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
