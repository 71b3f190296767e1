//! What keeps the secrets in the handler's records closed: the keys of devices, and those that register them.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use server::seal::{self, Keys, Sealed};
use store::{Batch, Commit, Key, Store, Tag};
use types::Random;
use zeroize::Zeroizing;

use crate::Error;

/// What the proof belongs to, and what it says.
const PROOF: &str = "the handler's proof";

/// Closes and opens secrets. Every handler on one store must have the same key file.
#[derive(Clone)]
pub struct Vault {
    keys: Arc<Keys>,
    random: Arc<dyn Random>,
}

impl Vault {
    /// A vault whose keys are those that the secrets in `store` were closed with; [`Error::Seal`] when they are others.
    pub async fn open(keys: Keys, store: &dyn Store, random: Arc<dyn Random>) -> Result<Self, Error> {
        let vault = Self { keys: Arc::new(keys), random };
        let key = Key::new(&Tag::service("handler")?, "vault")?;
        let proof = serde_json::to_vec(&vault.close(PROOF, &PROOF)?)?;
        match store.commit(Batch::new().expect_absent(key.clone()).put(key.clone(), proof)).await? {
            Commit::Done => Ok(vault),
            Commit::Conflict => {
                let found = store.get(&[key]).await?.into_iter().next().flatten();
                let proof: Option<Sealed> = found.map(|entry| serde_json::from_slice(&entry.value)).transpose()?;
                proof.map(|proof| vault.show::<String>("secrets", PROOF, &proof)).transpose()?;
                Ok(vault)
            }
        }
    }

    /// Closes a secret. `place` says where it belongs; it opens nowhere else.
    pub(crate) fn close(&self, place: &str, secret: &impl Serialize) -> Result<Sealed, Error> {
        let text = Zeroizing::new(serde_json::to_vec(secret)?);
        Ok(self.keys.seal(place, &text, self.random.as_ref())?)
    }

    /// Shows what was closed for the same `place`; `what` names it in the error.
    pub(crate) fn show<T: DeserializeOwned>(
        &self,
        what: &'static str,
        place: &str,
        sealed: &Sealed,
    ) -> Result<T, Error> {
        let text = self.keys.unseal(what, place, sealed)?;
        serde_json::from_slice(&text).map_err(|_| seal::Error::Sealed(what).into())
    }
}
