//! Stored keys of applications and gateways: looked up by HMAC, and shown again from a sealed copy.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use types::AccessKey;

use crate::{
    Account, Error, Result,
    seal::{self, Mark, Sealed},
};

/// A key, as stored in the entity that it belongs to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredKey {
    /// What it is recognised by.
    mark: Mark,
    /// The sealed key, to show it again.
    sealed: Sealed,
}

impl StoredKey {
    /// Whether it is the key with this mark.
    pub(crate) fn has(&self, mark: &Mark) -> bool {
        self.mark.is_that_of(mark)
    }
}

impl Account {
    /// Makes a key of 256 random bits. `place` says what it opens; it is worth nothing elsewhere.
    pub(crate) fn make_key(&self, place: &str) -> Result<StoredKey> {
        let secret = URL_SAFE_NO_PAD.encode(self.random_bytes::<32>());
        let key = AccessKey::new(&self.settings.issuer, &secret).map_err(|_| Error::Crypto("make a key"))?;
        let text = key.expose().as_bytes();
        let sealed = self.keys.seal(place, text, self.random.as_ref())?;
        Ok(StoredKey { mark: self.keys.mark(place, text), sealed })
    }

    /// Returns the HMAC of a key that was sent, for this place.
    pub(crate) fn mark_of_key(&self, place: &str, sent: &AccessKey) -> Mark {
        self.keys.mark(place, sent.expose().as_bytes())
    }

    /// The key itself; `what` names it in the error.
    pub(crate) fn open_key(&self, what: &'static str, place: &str, kept: &StoredKey) -> Result<AccessKey> {
        let opened = self.keys.unseal(what, place, &kept.sealed)?;
        let key = std::str::from_utf8(&opened).ok().and_then(|text| text.parse().ok());
        Ok(key.ok_or(seal::Error::Sealed(what))?)
    }
}
