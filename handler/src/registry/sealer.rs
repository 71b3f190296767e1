//! Seals the secrets in the handler's records: the keys of devices, and the access keys that register them.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use server::seal::{self, Sealed, SealingKeys};
use store::{Batch, Commit, Key, Store, Tag};
use types::Random;
use zeroize::Zeroizing;

use crate::Error;

/// The content of the proof record, and its associated data.
const PROOF: &str = "the handler's proof";

/// Seals and opens secrets. All handlers that share a store need the same key file.
#[derive(Clone)]
pub struct Sealer {
    keys: Arc<SealingKeys>,
    random: Arc<dyn Random>,
}

impl Sealer {
    /// A sealer for the secrets in `store`; [`Error::Seal`] if they were sealed with other keys.
    ///
    /// The first sealer of a store leaves a proof there, which later ones have to open.
    pub async fn for_store(keys: SealingKeys, store: &dyn Store, random: Arc<dyn Random>) -> Result<Self, Error> {
        let sealer = Self { keys: Arc::new(keys), random };
        let key = Key::new(&Tag::service("handler")?, "vault")?;
        let proof = serde_json::to_vec(&sealer.seal(PROOF, &PROOF)?)?;
        if store.commit(Batch::new().expect_absent(key.clone()).put(key.clone(), proof)).await? == Commit::Conflict {
            let found = store.get_one(&key).await?;
            let proof: Option<Sealed> = found.map(|entry| serde_json::from_slice(&entry.value)).transpose()?;
            proof.map(|proof| sealer.open::<String>("secrets", PROOF, &proof)).transpose()?;
        }
        Ok(sealer)
    }

    /// Seals a secret. It opens only with the same associated data `aad`, which says where it belongs.
    pub(crate) fn seal(&self, aad: &str, secret: &impl Serialize) -> Result<Sealed, Error> {
        let plain = Zeroizing::new(serde_json::to_vec(secret)?);
        Ok(self.keys.seal(aad, &plain, self.random.as_ref())?)
    }

    /// The same for a secret of bytes, sealed as bytes.
    pub(crate) fn seal_bytes(&self, aad: &str, secret: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.keys.seal_bytes(aad, secret, self.random.as_ref())?)
    }

    /// Opens what [`Self::seal`] has sealed with the same `aad`; `what` names it in the error.
    pub(crate) fn open<T: DeserializeOwned>(&self, what: &'static str, aad: &str, sealed: &Sealed) -> Result<T, Error> {
        let plain = self.keys.open(what, aad, sealed)?;
        serde_json::from_slice(&plain).map_err(|_| seal::SealError::Sealed(what).into())
    }

    /// Opens what [`Self::seal_bytes`] has sealed.
    pub(crate) fn open_bytes(&self, what: &'static str, aad: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
        Ok(self.keys.open_bytes(what, aad, sealed)?)
    }
}
