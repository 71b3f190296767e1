//! Users: registering them, checking passwords, reading and changing their records; mails to them, and rate limits.

pub(crate) mod consent;
pub(crate) mod email;
pub(crate) mod linked_login;
pub(crate) mod mail;
pub(crate) mod password;
pub(crate) mod profile;
pub(crate) mod rate_limit;
pub(crate) mod session;
mod username;

use std::{collections::BTreeMap, net::IpAddr};

use api::rest::account::{ListedUser, NewUser, User};
use serde::{Deserialize, Serialize};
use server::ledger::Owner;
use store::{Key, Tag};
use types::{ClientId, FullName, Secret, Timestamp, UserId, Username};

use self::{consent::Consent, email::Email, linked_login::LinkedLogin, password::PasswordHashString};
use crate::{
    Account, Error, Result,
    documents::{Document, retried},
    metrics,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UserRecord {
    pub(crate) id: UserId,
    pub(crate) username: Username,
    pub(crate) email: Email,
    /// None for a user who only logs in at providers, and has not set one.
    #[serde(default)]
    pub(crate) password: Option<PasswordHashString>,
    pub(crate) created: Timestamp,
    pub(crate) name: FullName,
    /// True if the e-mail address is confirmed.
    pub(crate) valid: bool,
    /// True if the operator disabled the user.
    #[serde(default)]
    pub(crate) disabled: bool,
    /// Sessions, codes and tokens from before this Unix time in seconds are invalid.
    #[serde(default)]
    pub(crate) not_before_s: u64,
    /// Logins at OpenID Connect providers, by their issuer.
    #[serde(default)]
    pub(crate) logins: BTreeMap<String, LinkedLogin>,
    /// Consents by client; with empty scopes if revoked.
    #[serde(default)]
    pub(crate) consents: BTreeMap<ClientId, Consent>,
    /// Number of further names that the user has taken. All of them stay reserved.
    #[serde(default)]
    names_taken: u32,
}

impl Account {
    /// Registers a user and sends the confirmation mail.
    ///
    /// Fails if the name is taken, the password is too common, or the address registers too often.
    pub(crate) async fn register(&self, new: NewUser, from: IpAddr) -> Result<User> {
        check(&new)?;
        self.limit_registrations(from).await?;
        let object = format!("{} from {from}", new.username);
        let mut change = self.audit.change("user registered", &from, &object)?;
        let outcome = self.create_user(new, &Owner::of_address(from)).await;
        if let Ok(user) = &outcome {
            change.set_actor(&user.id);
        }
        change.end(&outcome);
        let user = outcome?;
        self.remember_address(&user.id, from).await;
        self.mail_confirmation(&user);
        Ok(user.into())
    }

    /// Creates a user. The password is hashed when it is the turn of `owner`.
    pub(crate) async fn create_user(&self, new: NewUser, owner: &Owner) -> Result<UserRecord> {
        let user = self.new_user_with_password(new, owner).await?;
        self.store_user(user).await
    }

    /// The same user, who is not stored yet.
    pub(crate) async fn new_user_with_password(&self, new: NewUser, owner: &Owner) -> Result<UserRecord> {
        let email = check(&new)?;
        if !self.is_free(&new.username).await? {
            return Err(taken(&new.username));
        }
        let password = Some(self.passwords.hash(owner, new.password).await?);
        Ok(UserRecord { password, ..self.new_user(new.username, email) })
    }

    /// A user without a password, who is not stored yet.
    pub(crate) fn new_user(&self, username: Username, email: Email) -> UserRecord {
        UserRecord {
            id: UserId::from_bytes(self.random.array()),
            username,
            email,
            password: None,
            created: self.clock.now(),
            name: FullName::default(),
            valid: false,
            disabled: false,
            not_before_s: 0,
            logins: BTreeMap::new(),
            consents: BTreeMap::new(),
            names_taken: 0,
        }
    }

    /// Stores a new user. Fails if the name is taken.
    ///
    /// The record is written before the name, which decides who gets it. Without its name, a record cannot be found.
    pub(crate) async fn store_user(&self, user: UserRecord) -> Result<UserRecord> {
        self.store_unnamed(&user).await?;
        if self.reserve_name(&user.username, &user.id).await? {
            return Ok(user);
        }
        self.remove_unnamed(&user.id).await?;
        Err(taken(&user.username))
    }

    /// Stores the record of a new user, whose name is not reserved yet.
    pub(crate) async fn store_unnamed(&self, user: &UserRecord) -> Result<()> {
        self.documents.add(&user_key(&user.id)?, user).await.map(drop)
    }

    /// Deletes the record of a new user who does not get the name.
    pub(crate) async fn remove_unnamed(&self, user_id: &UserId) -> Result<()> {
        self.documents.remove(&user_key(user_id)?).await
    }

    /// The user with this name and password. An unknown name takes as long as a wrong password.
    ///
    /// The record is read again after the check, so a password that was changed meanwhile is refused.
    pub(crate) async fn user_with_password(
        &self,
        username: &str,
        password: Secret,
        from: IpAddr,
    ) -> Result<Option<Document<UserRecord>>> {
        let username = username.parse::<Username>().ok();
        self.limit_logins(username.as_ref(), from).await?;
        let user = match &username {
            Some(username) => self.find_user(username).await?.filter(|user| !user.disabled),
            None => None,
        };
        let known = match &user {
            Some(user) => self.knows_address(&user.id, from).await?,
            None => false,
        };
        if let Some(username) = username.as_ref().filter(|_| !known) {
            self.limit_logins_from_new_addresses(username).await?;
        }
        let record = user.as_ref().and_then(|user| user.password.clone());
        // Where a user has logged in before, others at the same address do not delay it.
        let owner = user.as_ref().filter(|_| known).map(|user| Owner::from(&user.id));
        let owner = owner.unwrap_or_else(|| Owner::of_address(from));
        let fits = self.passwords.verify(&owner, password, record).await?;
        let (Some(user), true) = (user, fits) else { return self.no_login(username.as_ref(), from) };
        if !known {
            self.remember_address(&user.id, from).await;
        }
        let found = self.stored_user(&user.id).await?;
        Ok(found.filter(|now| now.value.password == user.password && !now.value.disabled))
    }

    fn no_login<T>(&self, username: Option<&Username>, from: IpAddr) -> Result<Option<T>> {
        metrics::refused("password");
        // Invalid names are not logged: people sometimes type their password there.
        let username = username.map_or("something that is no username", Username::as_str);
        self.audit.note_from(from, "login refused", &username);
        Ok(None)
    }

    pub(crate) async fn user(&self, user_id: &UserId) -> Result<Option<UserRecord>> {
        Ok(self.stored_user(user_id).await?.map(|stored| stored.value))
    }

    pub(crate) async fn stored_user(&self, user_id: &UserId) -> Result<Option<Document<UserRecord>>> {
        self.documents.read(&user_key(user_id)?).await
    }

    /// Changes a user and returns the new record.
    ///
    /// `change` is called again, with the newest record, after each conflict.
    pub(crate) async fn change_user(
        &self,
        user_id: &UserId,
        change: impl Fn(&mut UserRecord) -> Result<()>,
    ) -> Result<UserRecord> {
        let attempt = || async {
            let mut stored = self.stored_user(user_id).await?.ok_or_else(|| no_user(user_id))?;
            change(&mut stored.value)?;
            Ok(self.documents.replace(&stored).await?.then_some(stored.value))
        };
        retried("user", attempt).await
    }

    /// The users with these ids, in the same order, without those that do not exist.
    pub(crate) async fn users(&self, user_ids: impl Iterator<Item = &UserId>) -> Result<Vec<UserRecord>> {
        let keys = user_ids.map(user_key).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Document<UserRecord>>> = self.documents.read_all(&keys).await?;
        Ok(found.into_iter().flatten().map(|stored| stored.value).collect())
    }
}

impl UserRecord {
    /// Ends all sessions, codes, grants and tokens of the user.
    pub(crate) fn revoke_all(&mut self, now: Timestamp) {
        self.not_before_s = next_second(self.not_before_s, now);
    }

    /// The Unix time in seconds from which on this client's tokens for the user count.
    ///
    /// It increases with each revocation. Sessions, codes and grants store it and are valid only while it is unchanged.
    pub(crate) fn not_before_s_of(&self, client: &ClientId) -> u64 {
        let consent = self.consents.get(client).map_or(0, |consent| consent.not_before_s);
        self.not_before_s.max(consent)
    }
}

/// A second after both `last` and `now`, which invalidates everything issued before.
pub(crate) fn next_second(last: u64, now: Timestamp) -> u64 {
    last.max(now.as_secs()).saturating_add(1)
}

fn check(new: &NewUser) -> Result<Email> {
    password::check(&new.password, &new.username)?;
    new.email.parse()
}

pub(crate) fn taken(username: &Username) -> Error {
    Error::Taken { what: "username", id: username.to_string() }
}

pub(crate) fn no_user(user_id: &UserId) -> Error {
    Error::NotFound { what: "user", id: user_id.to_string() }
}

impl From<UserRecord> for User {
    fn from(user: UserRecord) -> Self {
        let UserRecord { id, username, email, created, name, valid, .. } = user;
        Self { username, email: email.to_string(), created, name, valid, id }
    }
}

impl From<UserRecord> for ListedUser {
    fn from(user: UserRecord) -> Self {
        let disabled = user.disabled;
        Self { user: user.into(), disabled }
    }
}

/// The store tag of everything that belongs to a user.
pub(crate) fn user_tag(user_id: &UserId) -> Result<Tag> {
    Ok(Tag::user(user_id.as_str())?)
}

pub(crate) fn user_key(user_id: &UserId) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, "user")?)
}
