//! Logins at OpenID Connect providers that are linked with users.
//!
//! A user lists its logins, and a record for each says whose it is. The list is written first: so a record names a user
//! who does not list the login only if that user has unlinked it, and then anybody may have it.

use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{Timestamp, UserId};

use super::UserRecord;
use crate::{
    Account, Error, Result,
    documents::{Document, retried},
    user::{user_key, username::name_key},
};

/// Maximum number of logins of a user, each at another provider.
const LOGINS_MAX: usize = 10;
const CONTEXT: &str = "login at a provider";

/// A person at a provider: the subject is unique there, and never reused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) issuer: String,
    pub(crate) subject: String,
}

/// A login, in the list of its user.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LinkedLogin {
    subject: String,
    pub(crate) since: Timestamp,
}

/// Says whose a login is, under the HMAC of the identity.
#[derive(Debug, Serialize, Deserialize)]
struct LoginRecord {
    user_id: UserId,
}

impl Account {
    /// The user that an identity is linked with.
    pub(crate) async fn user_with_identity(&self, identity: &Identity) -> Result<Option<Document<UserRecord>>> {
        let record = self.documents.read::<LoginRecord>(&self.login_key(identity)?).await?;
        let Some(record) = record else { return Ok(None) };
        let user = self.stored_user(&record.value.user_id).await?;
        Ok(user.filter(|user| user.value.lists(identity)))
    }

    /// Links an identity with a user. Fails if it is linked with another one.
    pub(crate) async fn link_login(&self, user_id: &UserId, identity: &Identity) -> Result<()> {
        let now = self.clock.now();
        self.change_user(user_id, |user| user.list_login(identity, now)).await?;
        if self.claim_login(user_id, identity).await? {
            return Ok(());
        }
        let remove = |user: &mut UserRecord| {
            user.logins.remove(&identity.issuer);
            Ok(())
        };
        self.change_user(user_id, remove).await?;
        Err(Error::LinkedElsewhere)
    }

    /// Stores a new user who logs in with an identity.
    pub(crate) async fn store_linked_user(&self, mut user: UserRecord, identity: &Identity) -> Result<UserRecord> {
        user.list_login(identity, user.created)?;
        let user = self.store_user(user).await?;
        if self.claim_login(&user.id, identity).await? {
            return Ok(user);
        }
        // The same person has just logged in elsewhere for the first time.
        self.documents.remove(&name_key(&user.username)?).await?;
        self.documents.remove(&user_key(&user.id)?).await?;
        Err(Error::Contended { what: "login" })
    }

    /// Unlinks a user's login, unless no other way to log in is left: a password, or a login at one of `issuers`.
    pub(crate) async fn unlink_login(&self, user_id: &UserId, issuer: &str, issuers: &[&str]) -> Result<()> {
        let Some(user) = self.user(user_id).await? else { return Ok(()) };
        let missing = || Error::NotFound { what: "linked login", id: issuer.to_owned() };
        let LinkedLogin { subject, .. } = user.logins.get(issuer).cloned().ok_or_else(missing)?;
        let remove = |user: &mut UserRecord| {
            if user.needs_login(issuer, issuers) {
                return Err(Error::LastLogin);
            }
            user.logins.remove(issuer);
            Ok(())
        };
        self.change_user(user_id, remove).await?;
        let key = self.login_key(&Identity { issuer: issuer.to_owned(), subject })?;
        if let Some(record) = self.documents.read::<LoginRecord>(&key).await?
            && record.value.user_id == *user_id
        {
            self.documents.delete(&record).await?;
        }
        Ok(())
    }

    /// Makes the record of an identity name this user, who lists it. Returns false if it is another user's.
    async fn claim_login(&self, user_id: &UserId, identity: &Identity) -> Result<bool> {
        let key = self.login_key(identity)?;
        let attempt = || async {
            let Some(mut record) = self.documents.read::<LoginRecord>(&key).await? else {
                let record = LoginRecord { user_id: user_id.clone() };
                return Ok(self.documents.create(&key, &record).await?.then_some(true));
            };
            if record.value.user_id == *user_id {
                return Ok(Some(true));
            }
            let other = self.user(&record.value.user_id).await?;
            if other.is_some_and(|other| other.lists(identity)) {
                return Ok(Some(false));
            }
            record.value.user_id = user_id.clone();
            Ok(self.documents.replace(&record).await?.then_some(true))
        };
        retried("login", attempt).await
    }

    fn login_key(&self, identity: &Identity) -> Result<Key> {
        let Identity { issuer, subject } = identity;
        let hash = self.keys.hash(CONTEXT, format!("{}:{issuer}{subject}", issuer.len()).as_bytes());
        Ok(Key::new(&Tag::named("i", hash.as_str())?, "user")?)
    }
}

impl UserRecord {
    /// True if, without a login, no other way to log in is left: a password, or a login at one of `issuers`.
    pub(crate) fn needs_login(&self, issuer: &str, issuers: &[&str]) -> bool {
        let is_way = |other: &String| other != issuer && issuers.contains(&other.as_str());
        self.password.is_none() && !self.logins.keys().any(is_way)
    }

    fn lists(&self, identity: &Identity) -> bool {
        self.logins.get(&identity.issuer).is_some_and(|login| login.subject == identity.subject)
    }

    fn list_login(&mut self, identity: &Identity, now: Timestamp) -> Result<()> {
        match self.logins.get(&identity.issuer) {
            Some(login) if login.subject == identity.subject => return Ok(()),
            Some(_) => return Err(Error::LinkedAlready),
            None if self.logins.len() >= LOGINS_MAX => {
                return Err(Error::Full { what: "login", count_max: LOGINS_MAX });
            }
            None => {}
        }
        let login = LinkedLogin { subject: identity.subject.clone(), since: now };
        self.logins.insert(identity.issuer.clone(), login);
        Ok(())
    }
}
