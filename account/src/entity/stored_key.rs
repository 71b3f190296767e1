//! Stored keys of applications and gateways: found by HMAC, and sealed so that they can be shown again.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use types::AccessKey;

use crate::{
    Account, Error, Result,
    seal::{self, KeyedHash, Sealed},
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredKey {
    /// The HMAC by which it is found.
    #[serde(rename = "mark")]
    hash: KeyedHash,
    sealed: Sealed,
}

impl StoredKey {
    pub(crate) fn matches(&self, hash: &KeyedHash) -> bool {
        self.hash.equals(hash)
    }
}

impl Account {
    /// Generates a key of 256 random bits that is valid only for what `aad` names.
    pub(crate) fn make_key(&self, aad: &str) -> Result<StoredKey> {
        let secret = URL_SAFE_NO_PAD.encode(self.random.array::<32>());
        let key = AccessKey::new(&self.settings.issuer, &secret).map_err(|_| Error::Crypto("make a key"))?;
        let text = key.expose().as_bytes();
        let sealed = self.keys.seal(aad, text, self.random.as_ref())?;
        Ok(StoredKey { hash: self.keys.hash(aad, text), sealed })
    }

    /// The HMAC of a key that a client sent. One that does not name its issuer is taken as ours.
    pub(crate) fn hash_of_key(&self, aad: &str, sent: &AccessKey) -> KeyedHash {
        let issued = sent.or_issued_by(&self.settings.issuer);
        self.keys.hash(aad, issued.as_ref().unwrap_or(sent).expose().as_bytes())
    }

    /// Opens a stored key. `what` names it in errors.
    pub(crate) fn open_key(&self, what: &'static str, aad: &str, stored: &StoredKey) -> Result<AccessKey> {
        let opened = self.keys.open(what, aad, &stored.sealed)?;
        let key = std::str::from_utf8(&opened).ok().and_then(|text| text.parse().ok());
        Ok(key.ok_or(seal::SealError::Sealed(what))?)
    }
}
