//! Rate limits by the generic cell rate algorithm (GCRA): a token bucket stored as one point in time.

mod buckets;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::buckets::Buckets;

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

/// The result of taking several tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenTokens {
    /// The number of tokens that were taken: all that were wanted, or all that there were.
    pub taken: u32,
    /// The number of tokens that are left.
    pub remaining: u32,
    /// The time until there is one more; zero if one is left.
    pub wait: Duration,
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

    /// Takes as many of `wanted` tokens as there are at `now` in a bucket that will be full at `full_at`, both in
    /// microseconds since 1970.
    ///
    /// Also returns when the bucket will be full if that changed. After the rate was changed, `full_at` can be later
    /// than that of an empty bucket; it then counts as empty, so nobody waits longer than for one token.
    pub(crate) fn take_several(self, now: u64, full_at: u64, wanted: u32) -> (TakenTokens, Option<u64>) {
        let before = full_at.clamp(now, now.saturating_add(self.fill_micros()));
        let there = self.fill_micros().saturating_sub(before - now) / self.per_micros();
        let taken = wanted.min(u32::try_from(there).unwrap_or(u32::MAX));
        let next = before + self.per_micros() * u64::from(taken);
        // A bucket that is emptier than empty is stored as empty, so that it starts to fill.
        (self.taken(taken, next - now), (taken > 0 || before < full_at).then_some(next))
    }

    /// The result when so many tokens were taken and the bucket will be full in `micros`.
    pub(crate) fn taken(self, taken: u32, micros: u64) -> TakenTokens {
        let room = self.fill_micros().saturating_sub(micros);
        let remaining = u32::try_from(room / self.per_micros()).unwrap_or(u32::MAX);
        let missing = if remaining > 0 { 0 } else { self.per_micros().saturating_sub(room) };
        TakenTokens { taken, remaining, wait: Duration::from_micros(missing) }
    }
}

/// The result of taking one token.
impl From<TakenTokens> for TakenToken {
    fn from(TakenTokens { taken, remaining, wait }: TakenTokens) -> Self {
        if taken > 0 { Self::Taken { remaining } } else { Self::Wait(wait) }
    }
}
