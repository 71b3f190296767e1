//! Rate limits by the generic cell rate algorithm (GCRA): a token bucket stored as one point in time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The rate at which a bucket fills, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The time in which one token is added; at least a microsecond.
    pub per: Duration,
    /// The tokens in a full bucket, at least one.
    pub burst: u32,
}

/// Result of taking a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TakenToken {
    /// A token was taken.
    Taken {
        /// Number of tokens left.
        remaining: u32,
    },
    /// The bucket stays empty for this long.
    Wait(Duration),
}

/// Maximum time per token: a year, so that sums stay exact in Redis.
const PER_MICROS_MAX: u64 = 365 * 24 * 3600 * 1_000_000;
/// Maximum time to fill a bucket: 200 years.
const FILL_MICROS_MAX: u64 = 200 * PER_MICROS_MAX;

impl Rate {
    /// Microseconds per token.
    pub(crate) fn per_micros(self) -> u64 {
        u64::try_from(self.per.as_micros()).unwrap_or(PER_MICROS_MAX).clamp(1, PER_MICROS_MAX)
    }

    /// Microseconds to fill an empty bucket.
    pub(crate) fn fill_micros(self) -> u64 {
        self.per_micros().saturating_mul(u64::from(self.burst.max(1))).min(FILL_MICROS_MAX)
    }

    /// Takes a token at `now` from a bucket that will be full at `full_at`, both in microseconds since 1970.
    ///
    /// Also returns when the bucket will be full if that changed. After the rate was changed, `full_at` can be later
    /// than that of an empty bucket; it then counts as empty, so nobody waits longer than for one token.
    pub(crate) fn take(self, now: u64, full_at: u64) -> (TakenToken, Option<u64>) {
        let next = full_at.clamp(now, now.saturating_add(self.fill_micros())) + self.per_micros();
        match (next - now).checked_sub(self.fill_micros()) {
            None | Some(0) => (self.taken(next - now), Some(next)),
            // Store such a bucket as empty, so that it starts to fill.
            Some(missing) => {
                let empty = (full_at > now.saturating_add(self.fill_micros())).then(|| next - self.per_micros());
                (TakenToken::Wait(Duration::from_micros(missing)), empty)
            }
        }
    }

    /// Returns the result for a token that was taken from a bucket that will be full in `micros`.
    pub(crate) fn taken(self, micros: u64) -> TakenToken {
        let remaining = self.fill_micros().saturating_sub(micros) / self.per_micros();
        TakenToken::Taken { remaining: u32::try_from(remaining).unwrap_or(u32::MAX) }
    }
}
