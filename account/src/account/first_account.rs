//! The link with which whoever has started the server creates its first account, which is an operator's.
//!
//! Only the terminal shows the link. It ends at its first use, at that of another process's on the same store, and with
//! the process; a store that has users gets none. Anybody else may still register, and does not become an operator.
//!
//! A kill leaves either nothing or the whole account. Its user, the record that makes that user an operator, and the
//! user's name cannot be one batch, because a cluster keeps them at different places; so the record decides, and whoever
//! reads it reserves the name if that was not done.

use std::{
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use api::rest::account::{NewUser, User};
use serde::{Deserialize, Serialize};
use server::{ledger::Owner, seal::KeyedHash};
use store::{Key, Tag};
use tokio::sync::Mutex;
use types::{UserId, Username};

use crate::{
    Account, Error, Result,
    documents::id_index::IdIndex,
    user::{UserRecord, taken},
};

/// The context of the hash of the link's token.
const CONTEXT: &str = "first account";

/// The link to the first account, and who has used it.
#[derive(Default)]
pub(crate) struct FirstAccount {
    /// The hash of the link's token; none if there is no link.
    token: OnceLock<KeyedHash>,
    /// The user who has used the link of this process or of another one, as far as that was read.
    user_id: Arc<OnceLock<UserId>>,
    /// Held while the link is used, so that it creates one account.
    using: Mutex<()>,
}

#[derive(Serialize, Deserialize)]
struct FirstAccountRecord {
    user_id: UserId,
}

impl Account {
    /// Reads who has created the first account, unless it is known: it may have been in another process on this store.
    pub(super) async fn read_first_account(&self) -> Result<()> {
        if let Some(user) = self.finish_first_account().await? {
            // The process that began was killed before it could record this.
            self.audit.note("operator appointed", &user.id, &user.username);
        }
        Ok(())
    }

    /// Reserves the name of the appointed user, unless that was done: the process that began may have been killed.
    ///
    /// Returns the user whose name it has reserved. If somebody else has got the name meanwhile, there is no first
    /// account, and the link is valid.
    async fn finish_first_account(&self) -> Result<Option<UserRecord>> {
        if self.first_account.user_id.get().is_some() {
            return Ok(None);
        }
        let Some(record) = self.documents.read::<FirstAccountRecord>(&key()?).await? else { return Ok(None) };
        let Some(user) = self.user(&record.value.user_id).await? else { return Ok(None) };
        let is_unfinished = self.is_free(&user.username).await?;
        if !self.reserve_name(&user.username, &user.id).await? {
            self.documents.delete(&record).await?;
            self.remove_unnamed(&user.id).await?;
            return Ok(None);
        }
        // Whoever reads it at the same time sets the same.
        let is_first = self.first_account.user_id.set(record.value.user_id).is_ok();
        Ok((is_unfinished && is_first).then_some(user))
    }

    /// The user of the first account, who is an operator; set as soon as it is created. It stays empty if the settings
    /// name operators: then only those count.
    pub fn first_operator(&self) -> Arc<OnceLock<UserId>> {
        if self.operators.is_empty() { Arc::clone(&self.first_account.user_id) } else { Arc::default() }
    }

    /// Creates the link to the first account; none if there are users, or if the settings name operators.
    pub async fn first_account_link(&self) -> Result<Option<String>> {
        if !self.operators.is_empty() || self.first_account.user_id.get().is_some() {
            return Ok(None);
        }
        let names: Vec<Username> = self.ids_in_index(IdIndex::Users, None).await?;
        if !self.users_named(&names).await?.is_empty() {
            return Ok(None);
        }
        let token = hex::encode(self.random.array::<16>());
        let is_new = self.first_account.token.set(self.keys.hash(CONTEXT, token.as_bytes())).is_ok();
        Ok(is_new.then(|| format!("{}/register?first={token}", self.public_url)))
    }

    /// Returns true if there is no first account yet. Another process on this store may have created it.
    pub async fn awaits_first_account(&self) -> Result<bool> {
        self.read_first_account().await?;
        Ok(self.first_account.user_id.get().is_none())
    }

    /// Returns true for the token of the link until there is a first account.
    pub(crate) async fn is_first_account_link(&self, token: &str) -> Result<bool> {
        let hash = self.first_account.token.get();
        let is_of_link = hash.is_some_and(|hash| self.keys.verify_hash(hash, CONTEXT, token.as_bytes()));
        Ok(is_of_link && self.awaits_first_account().await?)
    }

    /// Creates the first account for whoever has the link. Its address counts as confirmed: there is nobody to ask.
    pub(crate) async fn register_first(&self, token: &str, new: NewUser, from: IpAddr) -> Result<User> {
        let _using = self.first_account.using.lock().await;
        if !self.is_first_account_link(token).await? {
            return Err(Error::FirstAccountLink);
        }
        let mut user = self.new_user_with_password(new, &Owner::Component("operator".into())).await?;
        user.valid = true;
        let object = format!("{} from {from}", user.username);
        let registered = self.audit.change("user registered", &user.id, &object)?;
        let appointed = self.audit.change("operator appointed", &user.id, &object)?;
        registered.run(appointed.run(self.appoint(&user))).await?;
        self.remember_address(&user.id, from).await;
        Ok(user.into())
    }

    /// Stores a new user as the operator.
    async fn appoint(&self, user: &UserRecord) -> Result<()> {
        self.store_unnamed(user).await?;
        if !self.documents.create(&key()?, &FirstAccountRecord { user_id: user.id.clone() }).await? {
            // Of several processes on one store, another one was faster.
            self.remove_unnamed(&user.id).await?;
            return Err(Error::FirstAccountLink);
        }
        // The caller records it.
        self.finish_first_account().await?;
        let is_appointed = self.first_account.user_id.get() == Some(&user.id);
        if is_appointed { Ok(()) } else { Err(taken(&user.username)) }
    }
}

fn key() -> Result<Key> {
    Ok(Key::new(&Tag::named("oo", "first-account")?, "operator")?)
}
