//! Rate limits of logins, registrations and mails, per account and per address.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::limit::Limit;
use store::{Key, Tag, Token};
use types::{UserId, Username};

use crate::{Account, Error, Result, metrics};

/// Rate limits for logins, registrations and mails.
///
/// A guesser quickly exhausts the limit for one user and address, but locks the user out at that address only. The
/// limit across addresses is far above what people need, and addresses from which the user logged in before are exempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Login attempts per user and address.
    pub login: Limit,
    /// Login attempts per user, from all addresses from which the user never logged in.
    pub user: Limit,
    /// Login attempts per address, for all users.
    pub address: Limit,
    /// Registrations per address.
    pub registration: Limit,
    /// Mails per user.
    pub mail: Limit,
    /// Username changes per user.
    pub username: Limit,
}

impl Account {
    /// Counts a login attempt.
    pub(crate) async fn throttle_login(&self, username: Option<&Username>, from: IpAddr) -> Result<()> {
        let (limits, address) = (&self.settings.limits, bucket_of(from));
        self.take("address", limits.address, &address).await?;
        if let Some(username) = username {
            self.take("login", limits.login, &format!("{username}@{address}")).await?;
        }
        Ok(())
    }

    /// Counts a login attempt from an address that the user never logged in from.
    pub(crate) async fn throttle_stranger(&self, username: &Username) -> Result<()> {
        self.take("user", self.settings.limits.user, username.as_str()).await
    }

    /// Counts a password attempt of a user who is logged in.
    pub(crate) async fn throttle_password(&self, user_id: &UserId) -> Result<()> {
        self.take("password", self.settings.limits.login, user_id.as_str()).await
    }

    /// Counts a registration.
    pub(crate) async fn throttle_registration(&self, from: IpAddr) -> Result<()> {
        self.take("registration", self.settings.limits.registration, &bucket_of(from)).await
    }

    /// Counts a mail to a user.
    pub(crate) async fn throttle_mail(&self, user_id: &UserId) -> Result<()> {
        self.take("mail", self.settings.limits.mail, user_id.as_str()).await
    }

    /// Counts a username change.
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

/// The unit of rate limits: an IPv4 address, or the /64 network of an IPv6 address, which is one household.
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
    fn an_ipv6_network_counts_as_one_address() {
        let bucket = |text: &str| bucket_of(text.parse().unwrap());
        assert_eq!(bucket("2001:db8:1:2::3"), bucket("2001:db8:1:2:ffff::9"));
        assert_ne!(bucket("2001:db8:1:2::3"), bucket("2001:db8:1:3::3"));
        assert_eq!(bucket("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
