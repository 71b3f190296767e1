//! Addresses from which users logged in: guessers elsewhere hold nobody up there.

use std::{net::IpAddr, time::Duration};

use store::Key;
use types::UserId;

use super::user_tag;
use crate::{Account, Result, rate_limit::bucket_of};

/// How long an address is remembered after the login that made it known.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 3600);
/// The most addresses of one user; more are remembered when some of them are forgotten.
const ADDRESSES_MAX: usize = 100;
/// What the marks belong to.
const PLACE: &str = "address of a login";

impl Account {
    /// Whether a user logged in from there before.
    pub(crate) async fn knows_address(&self, user_id: &UserId, from: IpAddr) -> Result<bool> {
        Ok(self.documents.read::<()>(&self.address_key(user_id, from)?).await?.is_some())
    }

    /// Remembers that a user logged in from there. It is a help for the next time: what was done now stands without it.
    pub(crate) async fn remember_address(&self, user_id: &UserId, from: IpAddr) {
        if let Err(error) = self.try_to_remember(user_id, from).await {
            tracing::warn!(%error, "failed to remember where a user logged in from");
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

    /// The store has a mark of the address only: where people were is nobody's business.
    fn address_key(&self, user_id: &UserId, from: IpAddr) -> Result<Key> {
        let mark = self.keys.mark(PLACE, bucket_of(from).as_bytes());
        Ok(Key::new(&user_tag(user_id)?, &format!("address/{}", mark.as_str()))?)
    }
}
