//! The IP addresses that users logged in from. Password guessing elsewhere does not lock users out there.

use server::status::ErrorChain;
use std::{net::IpAddr, time::Duration};

use store::Key;
use types::UserId;

use super::rate_limit_address;
use crate::{Account, Result, user::user_tag};

/// Time that an address is remembered after its first login.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// Maximum number of addresses per user. New ones are not remembered until some have expired.
const ADDRESSES_MAX: usize = 100;
const CONTEXT: &str = "address of a login";

impl Account {
    pub(crate) async fn knows_address(&self, user_id: &UserId, from: IpAddr) -> Result<bool> {
        Ok(self.documents.read::<()>(&self.address_key(user_id, from)?).await?.is_some())
    }

    /// Remembers the address. Failures are only logged, because the login itself succeeded.
    pub(crate) async fn remember_address(&self, user_id: &UserId, from: IpAddr) {
        if let Err(error) = self.try_to_remember(user_id, from).await {
            tracing::warn!(error = %ErrorChain(&error), "cannot remember the address of a login");
        }
    }

    async fn try_to_remember(&self, user_id: &UserId, from: IpAddr) -> Result<()> {
        let prefix = Key::new(&user_tag(user_id)?, "address/")?;
        if self.documents.keys(&prefix, ADDRESSES_MAX).await?.len() < ADDRESSES_MAX {
            let expires = self.clock.now().plus(LIFETIME);
            self.documents.create_until(&self.address_key(user_id, from)?, &(), expires).await?;
        }
        Ok(())
    }

    /// The key has only an HMAC of the address, to protect the user's privacy.
    fn address_key(&self, user_id: &UserId, from: IpAddr) -> Result<Key> {
        let hash = self.keys.hash(CONTEXT, rate_limit_address(from).as_bytes());
        Ok(Key::new(&user_tag(user_id)?, &format!("address/{}", hash.as_str()))?)
    }
}
