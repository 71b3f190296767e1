//! Rate limits of logins, registrations and mails, per user and per client address.

mod login_address;

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::rate_limit::RateLimit;
pub(crate) use server::rate_limit::rate_limit_address;
use types::{UserId, Username};

use crate::{Account, Error, Result, metrics};

types::settings! {
    /// Rate limits. Clients beyond them are told how long to wait.
    ///
    /// Somebody who guesses a user's password soon reaches the limit for that user and address, which does not affect
    /// the user elsewhere. The limit for all addresses together is far above what people need, and does not apply to
    /// addresses from which the user logged in before.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    pub struct RateLimits {
        /// Password attempts for one user from one address.
        pub login: RateLimit = RateLimit::new(20, 60),
        /// Password attempts for one user from all addresses from which the user never logged in.
        pub user: RateLimit = RateLimit::new(1000, 1000),
        /// Password attempts from one address for all users.
        pub address: RateLimit = RateLimit::new(300, 600),
        /// Registrations from one address.
        pub registration: RateLimit = RateLimit::new(20, 20),
        /// Mails to one user.
        pub mail: RateLimit = RateLimit::new(3, 4),
        /// Changes of one user's name.
        pub username: RateLimit = RateLimit::new(3, 1),
    }
}

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
        let exceeded = self.documents.count(limit, policy, &format!("{policy}:{id}")).await?;
        let Some(exceeded) = exceeded else { return Ok(()) };
        metrics::rate_limited(policy);
        Err(Error::RateLimited(exceeded))
    }
}
