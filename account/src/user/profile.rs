//! A user's own profile, password and confirmed address; and what an operator may do to users.

use api::rest::account::{ProfileChange, User};
use types::{Secret, UserId, Username};

use super::{UserRecord, no_user, password};
use crate::{Account, Result, Session, audit};

/// Who changes the profile.
#[derive(Debug)]
pub enum Person {
    /// Somebody who logged in at the site.
    Session(Box<Session>),
    /// Somebody with a token.
    Token(UserId),
}

impl Person {
    /// Who it is.
    pub fn user_id(&self) -> &UserId {
        match self {
            Self::Session(session) => session.user_id(),
            Self::Token(user_id) => user_id,
        }
    }
}

impl Account {
    /// A user's own profile.
    pub async fn profile(&self, user_id: &UserId) -> Result<User> {
        Ok(self.user(user_id).await?.ok_or_else(|| no_user(user_id))?.into())
    }

    /// Changes a profile, all of it or nothing; a new address is asked to confirm itself.
    ///
    /// A new password needs the old one and ends every other session, grant and token of the user. The cookie that the
    /// session who asked goes on with is what this gives then.
    pub async fn change_profile(&self, person: &Person, change: ProfileChange) -> Result<Option<Secret>> {
        let before = self.user(person.user_id()).await?.ok_or_else(|| no_user(person.user_id()))?;
        // Everything that can refuse comes before the one change.
        let changed = self.checked(&before, change).await?;
        let now = self.clock.now();
        let user = self.change_user(&before.id, |user| changed.put_into(user, now)).await?;
        if changed.username.is_some() || changed.email.is_some() || changed.name.is_some() {
            audit::event("profile changed", &user.id, &user.username);
        }
        if changed.email.is_some() {
            self.mail_confirmation(&user);
        }
        if changed.password.is_none() {
            return Ok(None);
        }
        audit::event("password changed", &user.id, &"sessions, grants and tokens ended");
        match person {
            Person::Session(_) => self.first_session(&user.id).await,
            Person::Token(_) => Ok(None),
        }
    }

    /// Sends the mail again that asks to confirm the address; nothing when it is confirmed.
    pub async fn ask_confirmation(&self, user_id: &UserId) -> Result<()> {
        let user = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?;
        if !user.valid {
            self.throttle_mail(user_id).await?;
            self.mail_confirmation(&user);
        }
        Ok(())
    }

    /// Shuts a user out, or in again: sessions, grants and tokens end, and no password opens anything.
    ///
    /// An operator's call, not part of any interface.
    pub async fn set_disabled(&self, username: &Username, disabled: bool) -> Result<()> {
        let user_id = self.known_user(username).await?.id;
        let now = self.clock.now();
        let set = |user: &mut UserRecord| {
            user.disabled = disabled;
            user.end_all(now);
            Ok(())
        };
        self.change_user(&user_id, set).await?;
        audit::event(if disabled { "user disabled" } else { "user enabled" }, &"operator", &user_id);
        Ok(())
    }

    /// Gives a user who forgot the password a new one, and ends sessions, grants and tokens.
    ///
    /// An operator's call, not part of any interface.
    pub async fn reset_password(&self, username: &Username, new: Secret) -> Result<()> {
        password::check(&new, username)?;
        let user_id = self.known_user(username).await?.id;
        let record = self.passwords.record(new).await?;
        let now = self.clock.now();
        let reset = |user: &mut UserRecord| {
            user.password.clone_from(&record);
            user.end_all(now);
            Ok(())
        };
        self.change_user(&user_id, reset).await?;
        audit::event("password reset", &"operator", &user_id);
        Ok(())
    }
}
