//! Rate limits, and the headers that tell a client when to retry.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Rate;

/// A rate limit: a burst, and a number per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The size of a burst, at least 1.
    pub burst: u32,
    /// How many are added per hour, at least 1.
    pub per_hour: u32,
}

/// A rate limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// What it limits, in one word.
    pub policy: &'static str,
    /// The size of a burst.
    pub burst: u32,
    /// The time after which an exhausted limit is full again, in seconds.
    pub window_s: u64,
    /// When to retry, in seconds from now, at least 1.
    pub wait_s: u64,
}

impl Limit {
    /// Allows `burst` at once, and `per_hour` after that.
    pub const fn new(burst: u32, per_hour: u32) -> Self {
        Self { burst, per_hour }
    }

    /// The limit as the store counts it.
    pub fn rate(self) -> Rate {
        Rate { per: Duration::from_secs(3600) / self.per_hour.max(1), burst: self.burst.max(1) }
    }

    /// The limit was exceeded; `wait` until one more is allowed.
    pub fn exceeded(self, policy: &'static str, wait: Duration) -> Exceeded {
        let Rate { per, burst } = self.rate();
        let seconds = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Exceeded { policy, burst, window_s: seconds(per.saturating_mul(burst)), wait_s: seconds(wait).max(1) }
    }
}

impl Exceeded {
    /// The headers of HTTP and of the IETF draft that say when to retry.
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
    fn a_limit_says_when_to_retry() {
        let exceeded = Limit::new(20, 60).exceeded("login", Duration::from_millis(1500));
        assert_eq!(exceeded, Exceeded { policy: "login", burst: 20, window_s: 1200, wait_s: 2 });
        let headers = exceeded.headers().map(|(name, value)| format!("{name}: {value}"));
        let expected = ["retry-after: 2", "ratelimit-policy: \"login\";q=20;w=1200", "ratelimit: \"login\";r=0;t=2"];
        assert_eq!(headers, expected);
    }
}
