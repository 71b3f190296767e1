//! Profiles: reading and changing them, and what the operator may do to users.

mod change;

use api::rest::account::{ProfileChange, User};
use server::{audit::Change, ledger::Owner};
use types::{Secret, UserId, Username};

use self::change::Changed;
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
    /// A new password requires the old one, and ends all sessions, grants and tokens of the user. If the caller has a
    /// session, returns the cookie of a new one.
    pub(crate) async fn change_profile(
        &self,
        person: &AuthenticatedUser,
        change: ProfileChange,
    ) -> Result<Option<Secret>> {
        let before = self.user(person.user_id()).await?.ok_or_else(|| no_user(person.user_id()))?;
        let changes = self.audited(&before, &change)?;
        let outcome = self.apply(&before, change).await;
        changes.into_iter().flatten().for_each(|change| change.end(&outcome));
        let (user, changed) = outcome?;
        if changed.email.is_some() {
            self.mail_confirmation(&user);
        }
        if changed.password.is_none() {
            return Ok(None);
        }
        match person {
            AuthenticatedUser::Session(_) => self.start_session(&user.id).await,
            AuthenticatedUser::Token(_) => Ok(None),
        }
    }

    /// The audited changes that a change of a profile makes.
    fn audited(&self, user: &UserRecord, change: &ProfileChange) -> Result<[Option<Change<'_>>; 2]> {
        let is_profile = change.username.is_some() || change.email.is_some() || change.name.is_some();
        let username = change.username.as_ref().unwrap_or(&user.username);
        let profile = || self.audit.change("profile changed", &user.id, username);
        let password = || self.audit.change("password changed", &user.id, &"sessions, grants and tokens ended");
        Ok([is_profile.then(profile).transpose()?, change.password.is_some().then(password).transpose()?])
    }

    async fn apply(&self, before: &UserRecord, change: ProfileChange) -> Result<(UserRecord, Changed)> {
        // Everything that can fail comes before the change.
        let changed = self.checked(before, change).await?;
        let now = self.clock.now();
        let user = self.change_user(&before.id, |user| changed.put_into(user, now)).await?;
        Ok((user, changed))
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
        let user_id = self.require_user(username).await?.id;
        let now = self.clock.now();
        let set = |user: &mut UserRecord| {
            user.disabled = disabled;
            user.revoke_all(now);
            Ok(())
        };
        let event = if disabled { "user disabled" } else { "user enabled" };
        let change = self.audit.change(event, &"operator", &user_id)?;
        change.run(self.change_user(&user_id, set)).await.map(drop)
    }

    /// Sets a new password, and ends all sessions, grants and tokens.
    ///
    /// Only for the operator.
    pub async fn reset_password(&self, username: &Username, new: Secret) -> Result<()> {
        password::check(&new, username)?;
        let user_id = self.require_user(username).await?.id;
        let record = Some(self.passwords.hash(&Owner::from(&user_id), new).await?);
        let now = self.clock.now();
        let reset = |user: &mut UserRecord| {
            user.password.clone_from(&record);
            user.revoke_all(now);
            Ok(())
        };
        let change = self.audit.change("password reset", &"operator", &user_id)?;
        change.run(self.change_user(&user_id, reset)).await.map(drop)
    }
}
