//! Sessions of the site: a sealed cookie, and a record that can be deleted.

use std::{net::IpAddr, time::Duration};

use api::rest::account::User;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use store::Key;
use types::{Secret, Timestamp, UserId};

use super::{UserRecord, user_tag};
use crate::{
    Account, Error, Result,
    documents::{Document, retried},
    seal::Sealed,
};

pub(crate) const SESSION_LIFETIME: Duration = Duration::from_secs(14 * 24 * 3600);
/// Maximum number of sessions of one user. A new session replaces the oldest.
const SESSIONS_MAX: usize = 20;
/// Time after a login for which it shows, in place of a password, that the user is there.
const FRESH_FOR: Duration = Duration::from_secs(600);
/// The associated data of sealed cookies, and the context of HMACs.
const AAD: &str = "session";

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) user: Document<UserRecord>,
    key: Key,
    created: Timestamp,
}

/// A session as stored, under the HMAC of its id.
#[derive(Debug, Serialize, Deserialize)]
struct SessionRecord {
    created: Timestamp,
    /// The user's value when the session started. If it increases, the session is invalid.
    not_before_s: u64,
}

impl Session {
    pub(crate) fn user_id(&self) -> &UserId {
        &self.user.value.id
    }

    pub(crate) fn profile(&self) -> User {
        self.user.value.clone().into()
    }

    pub(crate) fn has_password(&self) -> bool {
        self.user.value.password.is_some()
    }

    /// Refuses a session that did not begin just now.
    pub(crate) fn check_fresh(&self, now: Timestamp) -> Result<()> {
        let is_fresh = self.created <= now && now.since(self.created) < FRESH_FOR;
        if is_fresh { Ok(()) } else { Err(Error::LoginTooOld) }
    }
}

impl Account {
    /// Logs a user in. Returns the new cookie, or `None` if the name or password is wrong.
    ///
    /// Neither the response nor its timing tells which of the two.
    pub(crate) async fn log_in(
        &self,
        username: &str,
        password: Secret,
        from: IpAddr,
    ) -> Result<Option<(Secret, User)>> {
        let Some(user) = self.user_with_password(username, password, from).await? else { return Ok(None) };
        let Some(cookie) = self.begin_session(&user).await? else { return Ok(None) };
        self.audit.note("login", &user.value.id, &format_args!("session from {from}"));
        Ok(Some((cookie, user.value.into())))
    }

    /// Starts a session for a user who has just registered or changed the password. Returns the cookie.
    pub(crate) async fn start_session(&self, user_id: &UserId) -> Result<Option<Secret>> {
        match self.stored_user(user_id).await? {
            Some(user) => self.begin_session(&user).await,
            None => Ok(None),
        }
    }

    /// The session of a cookie, unless it is forged or expired, or the user is disabled.
    pub(crate) async fn session(&self, cookie: &str) -> Result<Option<Session>> {
        let Some((user_id, id)) = self.open_cookie(cookie) else { return Ok(None) };
        let key = self.session_key(&user_id, &id)?;
        let Some(record) = self.documents.read::<SessionRecord>(&key).await? else { return Ok(None) };
        let user = self.stored_user(&user_id).await?;
        let user = user.filter(|user| !user.value.disabled && user.value.not_before_s == record.value.not_before_s);
        Ok(user.map(|user| Session { user, key, created: record.value.created }))
    }

    pub(crate) async fn log_out(&self, session: &Session) -> Result<()> {
        self.documents.remove(&session.key).await?;
        self.audit.note("logout", session.user_id(), &"session");
        Ok(())
    }

    /// Starts a session. Returns `None` if the user's password changed since `user` was read, or the user is disabled.
    pub(crate) async fn begin_session(&self, user: &Document<UserRecord>) -> Result<Option<Secret>> {
        let (user_id, id) = (&user.value.id, self.random.array::<32>());
        let key = self.session_key(user_id, &id)?;
        let now = self.clock.now();
        let record = SessionRecord { created: now, not_before_s: user.value.not_before_s };
        self.make_room(user_id).await?;
        let attempt = || async {
            let Some(current) = self.stored_user(user_id).await? else { return Ok(Some(None)) };
            if current.value.not_before_s != record.not_before_s || current.value.disabled {
                return Ok(Some(None));
            }
            let begun = self.documents.create_beside(&current, &key, &record, now.plus(SESSION_LIFETIME)).await?;
            if begun { self.seal_cookie(user_id, &id).map(|cookie| Some(Some(cookie))) } else { Ok(None) }
        };
        retried("user", attempt).await
    }

    /// When the newest session of a user began; none if all have expired, or the user has logged out of them.
    pub(crate) async fn last_session(&self, user_id: &UserId) -> Result<Option<Timestamp>> {
        let prefix = Key::new(&user_tag(user_id)?, "session/")?;
        let keys = self.documents.keys(&prefix, SESSIONS_MAX * 2).await?;
        let all = self.documents.read_all::<SessionRecord>(&keys).await?;
        Ok(all.into_iter().flatten().map(|stored| stored.value.created).max())
    }

    /// Ends the oldest sessions if the user has too many.
    async fn make_room(&self, user_id: &UserId) -> Result<()> {
        let prefix = Key::new(&user_tag(user_id)?, "session/")?;
        let keys = self.documents.keys(&prefix, SESSIONS_MAX * 2).await?;
        if keys.len() < SESSIONS_MAX {
            return Ok(());
        }
        let mut all: Vec<_> = self.documents.read_all::<SessionRecord>(&keys).await?.into_iter().flatten().collect();
        all.sort_by_key(|stored| stored.value.created);
        let over = (all.len() + 1).saturating_sub(SESSIONS_MAX);
        for oldest in all.iter().take(over) {
            self.documents.delete(oldest).await?;
        }
        Ok(())
    }

    fn seal_cookie(&self, user_id: &UserId, id: &[u8; 32]) -> Result<Secret> {
        let plain = format!("{user_id}.{}", URL_SAFE_NO_PAD.encode(id));
        Ok(Secret::new(self.keys.seal(AAD, plain.as_bytes(), self.random.as_ref())?.as_str()))
    }

    fn open_cookie(&self, cookie: &str) -> Option<(UserId, [u8; 32])> {
        let opened = self.keys.open(AAD, AAD, &Sealed::new(cookie)).ok()?;
        let (user_id, id) = std::str::from_utf8(&opened).ok()?.split_once('.')?;
        let id = URL_SAFE_NO_PAD.decode(id).ok()?;
        Some((user_id.to_owned().try_into().ok()?, id.try_into().ok()?))
    }

    /// The key has only an HMAC of the id, so that cookies cannot be made from what is in the store.
    fn session_key(&self, user_id: &UserId, id: &[u8; 32]) -> Result<Key> {
        let hash = self.keys.hash(AAD, id);
        Ok(Key::new(&user_tag(user_id)?, &format!("session/{}", hash.as_str()))?)
    }
}
