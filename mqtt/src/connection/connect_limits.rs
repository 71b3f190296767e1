//! Limits how often clients connect. This comes before checking their credentials, which is expensive.

use std::{net::IpAddr, sync::Arc};

use server::rate_limit::{LocalRateLimiter, RateLimit, RateLimitExceeded, rate_limit_address};
use sha2::{Digest, Sha256};
use types::{AppId, Clock, Credential};

use crate::metrics;

/// Counts connections by address and by credential.
pub(crate) struct ConnectLimits {
    by_address: LocalRateLimiter<String>,
    /// Keyed by a hash, so that no credential stays in memory.
    by_credential: LocalRateLimiter<[u8; 32]>,
}

impl ConnectLimits {
    pub(crate) fn new(per_address: RateLimit, per_credential: RateLimit, clock: &Arc<dyn Clock>) -> Self {
        Self {
            by_address: LocalRateLimiter::new("address", per_address, Arc::clone(clock)),
            by_credential: LocalRateLimiter::new("credential", per_credential, Arc::clone(clock)),
        }
    }

    /// Counts a CONNECT from this address.
    pub(crate) fn count_address(&self, from: IpAddr) -> Result<(), RateLimitExceeded> {
        self.by_address.take(&rate_limit_address(from)).inspect_err(|exceeded| metrics::rate_limited(exceeded.policy))
    }

    /// Takes back that a CONNECT from this address was counted, because its credential is valid: any number of clients
    /// may be behind one address.
    pub(crate) fn forget_address(&self, from: IpAddr) {
        self.by_address.give_back(&rate_limit_address(from));
    }

    /// Counts a CONNECT with this credential, whether or not it is valid.
    pub(crate) fn count_credential(&self, app_id: &AppId, credential: &Credential) -> Result<(), RateLimitExceeded> {
        let hash = Sha256::digest(format!("{app_id}\n{}", credential.to_header()));
        self.by_credential.take(&hash.into()).inspect_err(|exceeded| metrics::rate_limited(exceeded.policy))
    }
}
