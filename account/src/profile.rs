//! A user's own profile, password and confirmed address; and what an operator may do to users.

use api::rest::account::{ProfileChange, User};
use types::{FullName, Secret, UserId, Username};

use crate::{
    Account, Error, Result, Session, audit,
    email::Email,
    password,
    user::{UserRecord, no_user},
};

/// The most bytes of a first or last name.
const NAME_BYTES_MAX: usize = 100;

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

    /// Changes a profile; a new address is asked to confirm itself.
    ///
    /// A new password needs the old one and ends every other session, grant and token of the user. The cookie that the
    /// session who asked goes on with is what this gives then.
    pub async fn change_profile(&self, person: &Person, change: ProfileChange) -> Result<Option<Secret>> {
        let user_id = person.user_id();
        check_name(change.name.as_ref())?;
        let email = change.email.as_deref().map(str::parse::<Email>).transpose()?;
        let cookie = match (change.old_password, change.password) {
            (Some(old), Some(new)) => self.change_password(person, old, new).await?,
            (None, None) => None,
            _ => return Err(Error::Invalid { what: "password", must: "must come together with old_password" }),
        };
        if let Some(username) = &change.username
            && !self.take_name(username, user_id).await?
        {
            return Err(Error::Taken { what: "user name", id: username.to_string() });
        }
        if change.username.is_some() || email.is_some() || change.name.is_some() {
            self.write_profile(user_id, change.username, email, change.name).await?;
        }
        Ok(cookie)
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
        self.replace_password(&user_id, new, None).await?;
        audit::event("password reset", &"operator", &user_id);
        Ok(())
    }

    async fn change_password(&self, person: &Person, old: Secret, new: Secret) -> Result<Option<Secret>> {
        let user_id = person.user_id();
        self.throttle_password(user_id).await?;
        let user = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?;
        password::check(&new, &user.username)?;
        if !self.passwords.fits(old, Some(user.password.clone())).await? {
            audit::event("password change refused", user_id, &"wrong password");
            return Err(Error::WrongPassword);
        }
        self.replace_password(user_id, new, Some(&user.password)).await?;
        audit::event("password changed", user_id, &"sessions, grants and tokens ended");
        match person {
            Person::Session(_) => {
                let user = self.stored_user(user_id).await?.ok_or_else(|| no_user(user_id))?;
                self.begin_session(&user).await
            }
            Person::Token(_) => Ok(None),
        }
    }

    /// Replaces a password, if it is still `old` when that is given.
    async fn replace_password(&self, user_id: &UserId, new: Secret, old: Option<&str>) -> Result<()> {
        let record = self.passwords.record(new).await?;
        let now = self.clock.now();
        let replace = |user: &mut UserRecord| {
            if old.is_some_and(|old| old != user.password) {
                return Err(Error::WrongPassword);
            }
            user.password.clone_from(&record);
            user.end_all(now);
            Ok(())
        };
        self.change_user(user_id, replace).await.map(drop)
    }

    async fn write_profile(
        &self,
        user_id: &UserId,
        username: Option<Username>,
        email: Option<Email>,
        name: Option<FullName>,
    ) -> Result<()> {
        let before = self.user(user_id).await?.ok_or_else(|| no_user(user_id))?;
        let write = |user: &mut UserRecord| {
            if let Some(email) = &email
                && *email != user.email
            {
                user.email = email.clone();
                user.valid = false;
            }
            user.username = username.clone().unwrap_or_else(|| user.username.clone());
            user.name = name.clone().unwrap_or_else(|| user.name.clone());
            Ok(())
        };
        let user = self.change_user(user_id, write).await?;
        audit::event("profile changed", user_id, &user.username);
        if user.email != before.email {
            self.throttle_mail(user_id).await?;
            self.mail_confirmation(&user);
        }
        Ok(())
    }
}

fn check_name(name: Option<&FullName>) -> Result<()> {
    let Some(FullName { first, last }) = name else { return Ok(()) };
    let fits = |part: &str| part.len() <= NAME_BYTES_MAX && !part.chars().any(char::is_control);
    match first.iter().chain(last).all(|part| fits(part)) {
        true => Ok(()),
        false => Err(Error::Invalid { what: "name", must: "must have at most 100 bytes in each part" }),
    }
}
