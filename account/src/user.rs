//! Users: registering, checking a password, and the profile.

use std::{fmt, str::FromStr};

use api::rest::account::{NewUser, User};
use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{FullName, Secret, Timestamp, UserId, Username};

use crate::{
    Account, Error, Result, audit,
    document::Stored,
    password::{self, PasswordRecord},
};

/// The most bytes of an address, as SMTP has it.
const EMAIL_BYTES_MAX: usize = 254;

/// A user, as kept under the immutable id.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UserRecord {
    pub(crate) id: UserId,
    pub(crate) username: Username,
    pub(crate) email: Email,
    pub(crate) password: PasswordRecord,
    pub(crate) created: Timestamp,
    pub(crate) name: FullName,
    /// Whether the address is confirmed.
    pub(crate) valid: bool,
}

/// An address that looks like one; whether mail arrives there only mail can tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Email(String);

/// Whom a user name belongs to.
#[derive(Debug, Serialize, Deserialize)]
struct NameRecord {
    user_id: UserId,
}

impl Account {
    /// Registers a user.
    ///
    /// The record is written first and nobody knows of it until its name is: the name decides.
    pub(crate) async fn register(&self, new: NewUser) -> Result<UserRecord> {
        let email = new.email.parse()?;
        password::check(&new.password)?;
        let name_key = name_key(&new.username)?;
        let taken = || Error::Taken { what: "user name", id: new.username.to_string() };
        if self.documents.read::<NameRecord>(&name_key).await?.is_some() {
            return Err(taken());
        }
        let user = UserRecord {
            id: UserId::from_bytes(self.random_bytes()),
            username: new.username.clone(),
            email,
            password: self.passwords.record(new.password).await?,
            created: self.clock.now(),
            name: FullName::default(),
            valid: false,
        };
        let key = user_key(&user.id)?;
        self.documents.put(&key, &user).await?;
        if !self.documents.create(&name_key, &NameRecord { user_id: user.id.clone() }).await? {
            if let Some(unnamed) = self.documents.read::<UserRecord>(&key).await? {
                self.documents.delete(&unnamed).await?;
            }
            return Err(taken());
        }
        audit::event("user registered", &user.id, &user.username);
        Ok(user)
    }

    /// The user with this name and password; an unknown name takes as long as a wrong password.
    pub(crate) async fn user_with_password(&self, username: &str, password: Secret) -> Result<Option<UserRecord>> {
        let user = match username.parse() {
            Ok(username) => self.user_named(&username).await?,
            Err(_) => None,
        };
        let record = user.as_ref().map(|user| user.password.clone());
        let fits = self.passwords.fits(password, record).await?;
        Ok(user.filter(|_| fits))
    }

    /// The user with this name.
    pub(crate) async fn user_named(&self, username: &Username) -> Result<Option<UserRecord>> {
        let Some(name) = self.documents.read::<NameRecord>(&name_key(username)?).await? else { return Ok(None) };
        self.user(&name.value.user_id).await
    }

    /// The user with this id.
    pub(crate) async fn user(&self, user_id: &UserId) -> Result<Option<UserRecord>> {
        Ok(self.documents.read(&user_key(user_id)?).await?.map(|stored| stored.value))
    }

    /// The users with these ids, in the same order; those who are gone are left out.
    pub(crate) async fn users(&self, user_ids: impl Iterator<Item = &UserId>) -> Result<Vec<UserRecord>> {
        let keys = user_ids.map(user_key).collect::<Result<Vec<_>>>()?;
        let found: Vec<Option<Stored<UserRecord>>> = self.documents.read_all(&keys).await?;
        Ok(found.into_iter().flatten().map(|stored| stored.value).collect())
    }
}

impl From<UserRecord> for User {
    fn from(user: UserRecord) -> Self {
        let UserRecord { id, username, email, created, name, valid, password: _ } = user;
        Self { username, email: email.into(), created, name, valid, id }
    }
}

impl FromStr for Email {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = Error::Invalid { what: "email", must: "must look like name@example.com, with 254 bytes at most" };
        let Some((local, domain)) = text.rsplit_once('@') else { return Err(invalid) };
        let plain = text.chars().all(|character| !character.is_control() && !character.is_whitespace());
        let whole = !local.is_empty() && domain.split('.').all(|label| !label.is_empty());
        if plain && whole && text.len() <= EMAIL_BYTES_MAX { Ok(Self(text.to_owned())) } else { Err(invalid) }
    }
}

impl TryFrom<String> for Email {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Email> for String {
    fn from(email: Email) -> Self {
        email.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Where a user's entries are.
pub(crate) fn user_tag(user_id: &UserId) -> Result<Tag> {
    Ok(Tag::user(user_id.as_str())?)
}

fn user_key(user_id: &UserId) -> Result<Key> {
    Ok(Key::new(&user_tag(user_id)?, "user")?)
}

fn name_key(username: &Username) -> Result<Key> {
    Ok(Key::new(&Tag::named("n", username.as_str())?, "user")?)
}
