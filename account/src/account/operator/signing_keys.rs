//! Listing and rotating the keys that sign tokens.

use std::time::Duration;

use crate::{
    Account, Error, Result, Rotation, SigningKeyInfo,
    documents::retried,
    token::signing::{SigningKey, SigningKeys, entry},
};

/// Time that a key is published before it signs: longer than anybody caches the public keys.
const PUBLISHED_BEFORE: Duration = Duration::from_secs(3600);
impl Account {
    /// Creates a new signing key and returns all keys. Other instances notice within ten seconds.
    ///
    /// Fails while a planned key has not started to sign.
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
            self.signer.install(&stored.value, &self.keys, now)?;
            self.signing_keys().map(Some)
        };
        let change = self.audit.change("signing key rotated", &"operator", &format_args!("{rotation:?}"))?;
        change.run(retried("signing key", attempt)).await
    }

    /// All keys that verify tokens, in the order in which they start to sign.
    pub fn signing_keys(&self) -> Result<Vec<SigningKeyInfo>> {
        self.signer.list()
    }
}
