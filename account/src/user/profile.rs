//! A user's own profile, password and confirmed address, and the operator's changes to users.

use api::rest::account::{ProfileChange, User};
use types::{Secret, UserId, Username};

use super::{UserRecord, no_user, password};
use crate::{Account, Result, Session, audit};

/// Who changes a profile.
#[derive(Debug)]
pub enum AuthenticatedUser {
    /// Somebody who logged in at the site.
    Session(Box<Session>),
    /// A user with a token.
    Token(UserId),
}

impl AuthenticatedUser {
    /// Who it is.
    pub fn user_id(&self) -> &UserId {
        match self {
            Self::Session(session) => session.user_id(),
            Self::Token(user_id) => user_id,
        }
    }
}

impl Account {
    /// Returns a user's profile.
    pub async fn profile(&self, user_id: &UserId) -> Result<User> {
        Ok(self.user(user_id).await?.ok_or_else(|| no_user(user_id))?.into())
    }

    /// Changes a profile atomically. A new address gets a confirmation mail.
    ///
    /// A new password needs the old one and ends every other session, grant and token of the user. The cookie that the
    /// session who asked goes on with is what this gives then.
    pub async fn change_profile(&self, person: &AuthenticatedUser, change: ProfileChange) -> Result<Option<Secret>> {
        let before = self.user(person.user_id()).await?.ok_or_else(|| no_user(person.user_id()))?;
        // Do everything that can fail before the change itself.
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
            AuthenticatedUser::Session(_) => self.start_session(&user.id).await,
            AuthenticatedUser::Token(_) => Ok(None),
        }
    }

    /// Sends the mail again that asks to confirm the address; nothing when it is confirmed.
    pub async fn resend_confirmation(&self, user_id: &UserId) -> Result<()> {
        let user = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?;
        if !user.valid {
            self.limit_mails(user_id).await?;
            self.mail_confirmation(&user);
        }
        Ok(())
    }

    /// Disables or enables a user. Disabling ends sessions, grants and tokens, and the password stops working.
    ///
    /// For the operator; not part of any API.
    pub async fn set_disabled(&self, username: &Username, disabled: bool) -> Result<()> {
        let user_id = self.require_user(username).await?.id;
        let now = self.clock.now();
        let set = |user: &mut UserRecord| {
            user.disabled = disabled;
            user.revoke_all(now);
            Ok(())
        };
        self.change_user(&user_id, set).await?;
        audit::event(if disabled { "user disabled" } else { "user enabled" }, &"operator", &user_id);
        Ok(())
    }

    /// Sets a user's password, and ends sessions, grants and tokens.
    ///
    /// For the operator; not part of any API.
    pub async fn reset_password(&self, username: &Username, new: Secret) -> Result<()> {
        password::check(&new, username)?;
        let user_id = self.require_user(username).await?.id;
        let record = self.passwords.record(new).await?;
        let now = self.clock.now();
        let reset = |user: &mut UserRecord| {
            user.password.clone_from(&record);
            user.revoke_all(now);
            Ok(())
        };
        self.change_user(&user_id, reset).await?;
        audit::event("password reset", &"operator", &user_id);
        Ok(())
    }
}
