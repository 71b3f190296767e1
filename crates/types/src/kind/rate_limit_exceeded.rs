//! The refusal of a call by a rate limit.

/// The refusal of a call by a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitExceeded {
    /// The name of the limit, one word.
    pub policy: &'static str,
    /// Number of calls allowed at once.
    pub burst: u32,
    /// The time in which an empty bucket fills, in seconds.
    pub window_s: u64,
    /// Time to wait before the next call, in seconds; at least 1.
    pub wait_s: u64,
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
