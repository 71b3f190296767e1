//! Rate limits as operators set them, and the headers of a refused call.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Rate;

/// A burst of calls, and then a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// How many calls may come at once, at least 1.
    pub burst: u32,
    /// How many more are allowed per hour, at least 1.
    pub per_hour: u32,
}

/// A call that a rate limit refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitExceeded {
    /// The name of the limit, one word.
    pub policy: &'static str,
    /// How many calls may come at once.
    pub burst: u32,
    /// The seconds in which an empty bucket fills.
    pub window_s: u64,
    /// The seconds to wait before the next call, at least one.
    pub wait_s: u64,
}

impl RateLimit {
    /// A limit of `burst` calls at once and `per_hour` calls per hour.
    pub const fn new(burst: u32, per_hour: u32) -> Self {
        Self { burst, per_hour }
    }

    /// The limit as the store takes it.
    pub fn rate(self) -> Rate {
        Rate { per: Duration::from_secs(3600) / self.per_hour.max(1), burst: self.burst.max(1) }
    }

    /// Describes a call that this limit refused and that may come again after `wait`.
    pub fn exceeded(self, policy: &'static str, wait: Duration) -> RateLimitExceeded {
        let Rate { per, burst } = self.rate();
        let seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        RateLimitExceeded { policy, burst, window_s: seconds(per.saturating_mul(burst)), wait_s: seconds(wait).max(1) }
    }
}

impl RateLimitExceeded {
    /// `Retry-After`, and the fields of the IETF draft on rate limit headers.
    pub fn headers(&self) -> [(&'static str, String); 3] {
        let Self { policy, burst, window_s, wait_s } = self;
        [
            ("retry-after", wait_s.to_string()),
            ("ratelimit-policy", format!("\"{policy}\";q={burst};w={window_s}")),
            ("ratelimit", format!("\"{policy}\";r=0;t={wait_s}")),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_when_to_retry() {
        let exceeded = RateLimit::new(20, 60).exceeded("login", Duration::from_millis(1500));
        assert_eq!(exceeded, RateLimitExceeded { policy: "login", burst: 20, window_s: 1200, wait_s: 2 });
        let headers = exceeded.headers().map(|(name, value)| format!("{name}: {value}"));
        let expected = ["retry-after: 2", "ratelimit-policy: \"login\";q=20;w=1200", "ratelimit: \"login\";r=0;t=2"];
        assert_eq!(headers, expected);
    }
}
