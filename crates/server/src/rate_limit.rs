//! Rate limits as they are configured, and calls counted against them.

use std::{hash::Hash, net::IpAddr, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Buckets, Key, Rate, Store, Tag, TakenToken, TakenTokens};
use types::Clock;
pub use types::RateLimitExceeded;

/// The burst and the rate of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Calls that are allowed at once, at least 1.
    pub burst: u32,
    /// Further calls that are allowed per hour, at least 1.
    pub per_hour: u32,
}

impl RateLimit {
    /// A limit of `burst` calls at once and `per_hour` calls per hour.
    pub const fn new(burst: u32, per_hour: u32) -> Self {
        Self { burst, per_hour }
    }

    /// Converts the limit for the store.
    fn rate(self) -> Rate {
        Rate { per: Duration::from_secs(3600) / self.per_hour.max(1), burst: self.burst.max(1) }
    }

    /// Counts a call of `owner` in the store, which all instances share; returns a refusal beyond the limit.
    pub async fn take(
        self,
        policy: &'static str,
        owner: &str,
        store: &dyn Store,
    ) -> Result<Option<RateLimitExceeded>, store::Error> {
        Ok(self.take_several(policy, owner, store, 1).await?.1)
    }

    /// Counts as many of `wanted` calls as are allowed, and returns how many these are; and a refusal of the others.
    pub async fn take_several(
        self,
        policy: &'static str,
        owner: &str,
        store: &dyn Store,
        wanted: u32,
    ) -> Result<(u32, Option<RateLimitExceeded>), store::Error> {
        let key = Key::new(&Tag::named("l", owner)?, "")?;
        let TakenTokens { taken, wait, .. } = store.take_tokens(&key, self.rate(), wanted).await?;
        Ok((taken, (taken < wanted).then(|| self.exceeded(policy, wait))))
    }

    /// The refusal of a call that may be repeated after `wait`.
    fn exceeded(self, policy: &'static str, wait: Duration) -> RateLimitExceeded {
        let Rate { per, burst } = self.rate();
        let seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        RateLimitExceeded { policy, burst, window_s: seconds(per.saturating_mul(burst)), wait_s: seconds(wait).max(1) }
    }
}

/// Applies a rate limit to each key, in the memory of this process.
pub struct LocalRateLimiter<K> {
    policy: &'static str,
    limit: RateLimit,
    buckets: Buckets<K>,
    clock: Arc<dyn Clock>,
}

impl<K: Clone + Eq + Hash> LocalRateLimiter<K> {
    /// Allows as many calls per key as `limit` says; `policy` names it, in one word.
    pub fn new(policy: &'static str, limit: RateLimit, clock: Arc<dyn Clock>) -> Self {
        Self { policy, limit, buckets: Buckets::default(), clock }
    }

    /// Counts a call, or refuses it.
    pub fn take(&self, key: &K) -> Result<(), RateLimitExceeded> {
        let now = self.clock.now().as_unix_ms();
        match self.buckets.take(key, self.limit.rate(), now) {
            TakenToken::Taken { .. } => Ok(()),
            TakenToken::Wait(wait) => Err(self.limit.exceeded(self.policy, wait)),
        }
    }

    /// Takes back that a call was counted.
    pub fn give_back(&self, key: &K) {
        self.buckets.give_back(key, self.limit.rate());
    }
}

/// The address that limits apply to: for IPv6 the /64 network, because a household has all of its addresses.
pub fn rate_limit_address(address: IpAddr) -> String {
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
    use testing::ManualClock;

    use super::*;

    #[test]
    fn a_clock_that_is_set_back_refuses_nobody() {
        let clock = ManualClock::new();
        let limiter = LocalRateLimiter::new("login", RateLimit::new(20, 60), clock.clone());
        limiter.take(&"alice").unwrap();
        clock.set_back(Duration::from_secs(3600));
        (1..20).for_each(|_| limiter.take(&"alice").unwrap());
        assert_eq!(limiter.take(&"alice").unwrap_err().wait_s, 60);
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let bucket = |text: &str| rate_limit_address(text.parse().unwrap());
        assert_eq!(bucket("2001:db8:1:2::3"), bucket("2001:db8:1:2:ffff::9"));
        assert_ne!(bucket("2001:db8:1:2::3"), bucket("2001:db8:1:3::3"));
        assert_eq!(bucket("::ffff:192.0.2.1"), "192.0.2.1");
    }

    #[test]
    fn a_refusal_says_when_to_retry() {
        let exceeded = RateLimit::new(20, 60).exceeded("login", Duration::from_millis(1500));
        assert_eq!(exceeded, RateLimitExceeded { policy: "login", burst: 20, window_s: 1200, wait_s: 2 });
        let headers = exceeded.headers().map(|(name, value)| format!("{name}: {value}"));
        let expected = ["retry-after: 2", "ratelimit-policy: \"login\";q=20;w=1200", "ratelimit: \"login\";r=0;t=2"];
        assert_eq!(headers, expected);
    }
}
