//! Rate limits of logins, registrations and mails, per user and per client address.

use std::net::IpAddr;

use server::rate_limit::RateLimit;
pub(crate) use server::rate_limit::rate_limit_address;
use store::{Admission, Key, Tag};
use types::{UserId, Username};

use crate::{Account, Error, Result, metrics};

impl Account {
    pub(crate) async fn limit_logins(&self, username: Option<&Username>, from: IpAddr) -> Result<()> {
        let (limits, address) = (&self.settings.rate_limits, rate_limit_address(from));
        self.take("address", limits.address, &address).await?;
        if let Some(username) = username {
            self.take("login", limits.login, &format!("{username}@{address}")).await?;
        }
        Ok(())
    }

    /// Counts a password attempt from an address that the user never logged in from.
    pub(crate) async fn limit_logins_from_new_addresses(&self, username: &Username) -> Result<()> {
        self.take("user", self.settings.rate_limits.user, username.as_str()).await
    }

    /// Counts a password attempt by a user who is logged in.
    pub(crate) async fn limit_password_changes(&self, user_id: &UserId) -> Result<()> {
        self.take("password", self.settings.rate_limits.login, user_id.as_str()).await
    }

    pub(crate) async fn limit_registrations(&self, from: IpAddr) -> Result<()> {
        self.take("registration", self.settings.rate_limits.registration, &rate_limit_address(from)).await
    }

    pub(crate) async fn limit_mails(&self, user_id: &UserId) -> Result<()> {
        self.take("mail", self.settings.rate_limits.mail, user_id.as_str()).await
    }

    pub(crate) async fn limit_username_changes(&self, user_id: &UserId) -> Result<()> {
        self.take("username", self.settings.rate_limits.username, user_id.as_str()).await
    }

    async fn take(&self, policy: &'static str, limit: RateLimit, id: &str) -> Result<()> {
        let key = Key::new(&Tag::named("l", &format!("{policy}:{id}"))?, "")?;
        match self.documents.take_token(&key, limit.rate()).await? {
            Admission::Admitted { .. } => Ok(()),
            Admission::Wait(wait) => {
                metrics::rate_limited(policy);
                Err(Error::RateLimited(limit.exceeded(policy, wait)))
            }
        }
    }
}
