//! Validation of profile changes. Afterwards, only a concurrent change can make them fail.

use api::rest::account::ProfileChange;
use server::ledger::Owner;
use types::{FullName, Secret, Timestamp, Username};

use crate::{
    Account, Error, Result,
    user::{
        UserRecord,
        email::Email,
        password::{self, PasswordHashString},
    },
};

const NAME_BYTES_MAX: usize = 100;

/// Validated changes; `None` leaves a member as it is.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) username: Option<Username>,
    pub(crate) email: Option<Email>,
    pub(crate) name: Option<FullName>,
    /// The new hash, and the hash that the old password matched.
    pub(crate) password: Option<(PasswordHashString, Option<PasswordHashString>)>,
}

impl Changed {
    /// Applies the changes. Fails if the password was changed in between.
    pub(crate) fn put_into(&self, user: &mut UserRecord, now: Timestamp) -> Result<()> {
        if let Some((new, old)) = &self.password {
            if *old != user.password {
                return Err(Error::WrongPassword);
            }
            user.password = Some(new.clone());
            user.revoke_all(now);
        }
        if let Some(email) = &self.email {
            user.email = email.clone();
            user.valid = false;
        }
        user.username = self.username.clone().unwrap_or_else(|| user.username.clone());
        user.name = self.name.clone().unwrap_or_else(|| user.name.clone());
        Ok(())
    }
}

impl Account {
    /// Validates the changes, cheap checks first.
    ///
    /// Reserves a new username for the user even if a later check fails.
    pub(crate) async fn checked(&self, user: &UserRecord, change: ProfileChange) -> Result<Changed> {
        check_name(change.name.as_ref())?;
        let email = change.email.as_deref().map(str::parse::<Email>).transpose()?.filter(|email| *email != user.email);
        let username = change.username.filter(|username| *username != user.username);
        let passwords = match (change.old_password, change.password) {
            (Some(old), Some(new)) => Some((old, new)),
            (None, None) => None,
            _ => return Err(Error::Invalid { what: "password", must: "must be sent together with old_password" }),
        };
        if let Some((_, new)) = &passwords {
            password::check(new, username.as_ref().unwrap_or(&user.username))?;
            self.limit_password_changes(&user.id).await?;
        }
        if username.is_some() {
            self.limit_username_changes(&user.id).await?;
        }
        if email.is_some() {
            self.limit_mails(&user.id).await?;
        }
        let password = match passwords {
            Some((old, new)) => Some(self.new_password(user, old, new).await?),
            None => None,
        };
        if let Some(username) = &username {
            self.take_name(username, user).await?;
        }
        Ok(Changed { username, email, name: change.name, password })
    }

    /// The hashes of the new and the old password.
    async fn new_password(
        &self,
        user: &UserRecord,
        old: Secret,
        new: Secret,
    ) -> Result<(PasswordHashString, Option<PasswordHashString>)> {
        let owner = Owner::from(&user.id);
        if !self.passwords.verify(&owner, old, user.password.clone()).await? {
            self.audit.note_refusal("password change refused", &user.id, &"wrong password");
            return Err(Error::WrongPassword);
        }
        Ok((self.passwords.hash(&owner, new).await?, user.password.clone()))
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
