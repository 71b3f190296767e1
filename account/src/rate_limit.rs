//! How often strangers may try: logins, registrations and mails, for each account and for each address.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::limit::Limit;
use store::{Key, Tag, Token};
use types::{UserId, Username};

use crate::{Account, Error, Result, metrics};

/// How often strangers may try; beyond that they are told how long to wait.
///
/// A guesser runs out of tries for one user at once, and holds up that user only at the guesser's own address. What
/// many addresses may try together is bounded far above what people need, and those from which the user logged in
/// before are let through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Passwords for one user from one address.
    pub login: Limit,
    /// Passwords for one user from all addresses from which the user never logged in.
    pub user: Limit,
    /// Passwords from one address for all users.
    pub address: Limit,
    /// New users from one address.
    pub registration: Limit,
    /// Mails to one user.
    pub mail: Limit,
    /// New names of one user.
    pub username: Limit,
}

impl Account {
    /// Counts one try of a password.
    pub(crate) async fn throttle_login(&self, username: Option<&Username>, from: IpAddr) -> Result<()> {
        let (limits, address) = (&self.settings.limits, bucket_of(from));
        self.take("address", limits.address, &address).await?;
        if let Some(username) = username {
            self.take("login", limits.login, &format!("{username}@{address}")).await?;
        }
        Ok(())
    }

    /// Counts one try of a password for a user from an address that may be a guesser's.
    pub(crate) async fn throttle_stranger(&self, username: &Username) -> Result<()> {
        self.take("user", self.settings.limits.user, username.as_str()).await
    }

    /// Counts one try of a password by somebody who is logged in already.
    pub(crate) async fn throttle_password(&self, user_id: &UserId) -> Result<()> {
        self.take("password", self.settings.limits.login, user_id.as_str()).await
    }

    /// Counts one registration.
    pub(crate) async fn throttle_registration(&self, from: IpAddr) -> Result<()> {
        self.take("registration", self.settings.limits.registration, &bucket_of(from)).await
    }

    /// Counts one mail to a user.
    pub(crate) async fn throttle_mail(&self, user_id: &UserId) -> Result<()> {
        self.take("mail", self.settings.limits.mail, user_id.as_str()).await
    }

    /// Counts one change of a user's name.
    pub(crate) async fn throttle_username(&self, user_id: &UserId) -> Result<()> {
        self.take("username", self.settings.limits.username, user_id.as_str()).await
    }

    async fn take(&self, policy: &'static str, limit: Limit, id: &str) -> Result<()> {
        let key = Key::new(&Tag::named("l", &format!("{policy}:{id}"))?, "")?;
        match self.documents.take_token(&key, limit.rate()).await? {
            Token::Taken { .. } => Ok(()),
            Token::Wait(wait) => {
                metrics::throttled(policy);
                Err(Error::Throttled(limit.exceeded(policy, wait)))
            }
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            login: Limit::new(20, 60),
            user: Limit::new(1000, 1000),
            address: Limit::new(300, 600),
            registration: Limit::new(20, 20),
            mail: Limit::new(3, 4),
            username: Limit::new(3, 1),
        }
    }
}

/// What counts as one address: of IPv6 the network of a household, which can take as many addresses as it likes.
pub(crate) fn bucket_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_household_is_one_address() {
        let bucket = |text: &str| bucket_of(text.parse().unwrap());
        assert_eq!(bucket("2001:db8:1:2::3"), bucket("2001:db8:1:2:ffff::9"));
        assert_ne!(bucket("2001:db8:1:2::3"), bucket("2001:db8:1:3::3"));
        assert_eq!(bucket("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
