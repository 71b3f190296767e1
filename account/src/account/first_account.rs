//! The link with which whoever has started the server creates its first account, which is an operator's.
//!
//! Only the terminal shows the link. It ends at its first use, and with the process; a store that has users gets none.
//! Anybody else may still register, and does not become an operator.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use api::rest::account::{NewUser, User};
use serde::{Deserialize, Serialize};
use server::seal::KeyedHash;
use store::{Key, Tag};
use tokio::sync::Mutex;
use types::{UserId, Username};

use crate::{Account, Error, Result, documents::id_index::IdIndex};

/// The context of the hash of the link's token.
const CONTEXT: &str = "first account";

/// The link to the first account, and who has used it.
#[derive(Default)]
pub(crate) struct FirstAccount {
    /// The hash of the link's token; none if there is no link.
    token: OnceLock<KeyedHash>,
    /// The user who has used the link of this process or of an earlier one.
    user_id: Arc<OnceLock<UserId>>,
    /// Held while the link is used, so that it creates one account.
    using: Mutex<()>,
}

#[derive(Serialize, Deserialize)]
struct FirstAccountRecord {
    user_id: UserId,
}

impl Account {
    /// Reads who has created the first account.
    pub(super) async fn read_first_account(&self) -> Result<()> {
        if let Some(record) = self.documents.read::<FirstAccountRecord>(&key()?).await? {
            // It is read once, before anybody can use a link.
            _ = self.first_account.user_id.set(record.value.user_id);
        }
        Ok(())
    }

    /// The user of the first account, who is an operator; set as soon as it is created. It stays empty if the settings
    /// name operators: then only those count.
    pub fn first_operator(&self) -> Arc<OnceLock<UserId>> {
        if self.operators.is_empty() { Arc::clone(&self.first_account.user_id) } else { Arc::default() }
    }

    /// Creates the link to the first account; none if there are users, or if the settings name operators.
    pub async fn first_account_link(&self) -> Result<Option<String>> {
        let names: Vec<Username> = self.ids_in_index(IdIndex::Users, None).await?;
        if !names.is_empty() || !self.operators.is_empty() || self.first_account.user_id.get().is_some() {
            return Ok(None);
        }
        let token = hex::encode(self.random.array::<16>());
        let is_new = self.first_account.token.set(self.keys.hash(CONTEXT, token.as_bytes())).is_ok();
        Ok(is_new.then(|| format!("{}/register?first={token}", self.public_url)))
    }

    /// Returns true for the token of the link until it is used.
    pub(crate) fn is_first_account_link(&self, token: &str) -> bool {
        let hash = self.first_account.token.get();
        self.first_account.user_id.get().is_none()
            && hash.is_some_and(|hash| self.keys.verify_hash(hash, CONTEXT, token.as_bytes()))
    }

    /// Creates the first account for whoever has the link. Its address counts as confirmed: there is nobody to ask.
    pub(crate) async fn register_first(&self, token: &str, new: NewUser, from: IpAddr) -> Result<User> {
        let _using = self.first_account.using.lock().await;
        if !self.is_first_account_link(token) {
            return Err(Error::FirstAccountLink);
        }
        let user = self.add_user(new).await?;
        let (key, record) = (key()?, FirstAccountRecord { user_id: user.id.clone() });
        let object = format!("{} from {from}", user.username);
        let change = self.audit.change("operator appointed", &user.id, &object)?;
        // Of several processes on one store, another one may have been faster: one account is an operator's.
        if change.run(self.documents.create(&key, &record)).await? {
            _ = self.first_account.user_id.set(user.id.clone());
        }
        self.remember_address(&user.id, from).await;
        Ok(user)
    }
}

fn key() -> Result<Key> {
    Ok(Key::new(&Tag::named("oo", "first-account")?, "operator")?)
}
