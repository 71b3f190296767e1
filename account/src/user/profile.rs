//! Profiles: reading and changing them, and what the operator may do to users.

use api::rest::account::{ProfileChange, User};
use types::{Secret, UserId, Username};

use super::{UserRecord, no_user, password};
use crate::{Account, Result, Session};

/// A user authenticated by session or token.
#[derive(Debug)]
pub(crate) enum AuthenticatedUser {
    Session(Box<Session>),
    Token(UserId),
}

impl AuthenticatedUser {
    pub(crate) fn user_id(&self) -> &UserId {
        match self {
            Self::Session(session) => session.user_id(),
            Self::Token(user_id) => user_id,
        }
    }
}

impl Account {
    pub(crate) async fn profile(&self, user_id: &UserId) -> Result<User> {
        Ok(self.user(user_id).await?.ok_or_else(|| no_user(user_id))?.into())
    }

    /// Applies all changes or none. A new e-mail address must be confirmed.
    ///
    /// A new password requires the old one, and ends all sessions, grants and tokens of the user. If the caller has a session,
    /// returns the cookie of a new one.
    pub(crate) async fn change_profile(
        &self,
        person: &AuthenticatedUser,
        change: ProfileChange,
    ) -> Result<Option<Secret>> {
        let audited = self.audit.change()?;
        let before = self.user(person.user_id()).await?.ok_or_else(|| no_user(person.user_id()))?;
        // Everything that can fail comes before the change.
        let changed = self.checked(&before, change).await?;
        let now = self.clock.now();
        let user = self.change_user(&before.id, |user| changed.put_into(user, now)).await?;
        if changed.username.is_some() || changed.email.is_some() || changed.name.is_some() {
            audited.record("profile changed", &user.id, &user.username);
        }
        if changed.email.is_some() {
            self.mail_confirmation(&user);
        }
        if changed.password.is_none() {
            return Ok(None);
        }
        audited.record("password changed", &user.id, &"sessions, grants and tokens ended");
        match person {
            AuthenticatedUser::Session(_) => self.start_session(&user.id).await,
            AuthenticatedUser::Token(_) => Ok(None),
        }
    }

    /// Sends the confirmation mail again, unless the address is confirmed.
    pub(crate) async fn resend_confirmation(&self, user_id: &UserId) -> Result<()> {
        let user = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?;
        if !user.valid {
            self.limit_mails(user_id).await?;
            self.mail_confirmation(&user);
        }
        Ok(())
    }

    /// Disables or enables a user. Ends all sessions, grants and tokens; a disabled user cannot log in.
    ///
    /// Only for the operator.
    pub async fn set_disabled(&self, username: &Username, disabled: bool) -> Result<()> {
        let audited = self.audit.change()?;
        let user_id = self.require_user(username).await?.id;
        let now = self.clock.now();
        let set = |user: &mut UserRecord| {
            user.disabled = disabled;
            user.revoke_all(now);
            Ok(())
        };
        self.change_user(&user_id, set).await?;
        audited.record(if disabled { "user disabled" } else { "user enabled" }, &"operator", &user_id);
        Ok(())
    }

    /// Sets a new password, and ends all sessions, grants and tokens.
    ///
    /// Only for the operator.
    pub async fn reset_password(&self, username: &Username, new: Secret) -> Result<()> {
        let audited = self.audit.change()?;
        password::check(&new, username)?;
        let user_id = self.require_user(username).await?.id;
        let record = self.passwords.hash(new).await?;
        let now = self.clock.now();
        let reset = |user: &mut UserRecord| {
            user.password.clone_from(&record);
            user.revoke_all(now);
            Ok(())
        };
        self.change_user(&user_id, reset).await?;
        audited.record("password reset", &"operator", &user_id);
        Ok(())
    }
}
