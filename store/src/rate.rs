//! Rate limits by GCRA: a bucket that fills steadily, kept as one point in time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How fast a bucket fills, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The time in which one token comes in; counted in microseconds, at least one.
    pub per: Duration,
    /// How many tokens a full bucket holds, at least one.
    pub burst: u32,
}

/// What a bucket answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Token {
    /// A token was taken.
    Taken {
        /// How many more could be taken now.
        remaining: u32,
    },
    /// The bucket is empty for this long.
    Wait(Duration),
}

/// The longest time in which one token comes in: a year, so that sums stay exact in Redis.
const PER_MICROS_MAX: u64 = 365 * 24 * 3600 * 1_000_000;
/// The longest time in which a bucket fills: two centuries.
const FILL_MICROS_MAX: u64 = 200 * PER_MICROS_MAX;

impl Rate {
    /// Microseconds in which one token comes in.
    pub(crate) fn per_micros(self) -> u64 {
        u64::try_from(self.per.as_micros()).unwrap_or(PER_MICROS_MAX).clamp(1, PER_MICROS_MAX)
    }

    /// Microseconds in which an empty bucket fills.
    pub(crate) fn fill_micros(self) -> u64 {
        self.per_micros().saturating_mul(u64::from(self.burst.max(1))).min(FILL_MICROS_MAX)
    }

    /// Takes a token from a bucket that is full at `full_at`, in microseconds since 1970.
    ///
    /// The bucket's new state comes with the answer when it changes. A bucket is never emptier than empty: after
    /// a clock was set back it seems to be full later than any could be.
    pub(crate) fn take(self, now: u64, full_at: u64) -> (Token, Option<u64>) {
        let next = full_at.clamp(now, now.saturating_add(self.fill_micros())) + self.per_micros();
        match (next - now).checked_sub(self.fill_micros()) {
            None | Some(0) => (self.taken(next - now), Some(next)),
            // A bucket that seems emptier than it can be is empty from now on, and fills.
            Some(missing) => {
                let empty = (full_at > now.saturating_add(self.fill_micros())).then(|| next - self.per_micros());
                (Token::Wait(Duration::from_micros(missing)), empty)
            }
        }
    }

    /// A token was taken, and the bucket is full again in `micros`.
    pub(crate) fn taken(self, micros: u64) -> Token {
        let remaining = self.fill_micros().saturating_sub(micros) / self.per_micros();
        Token::Taken { remaining: u32::try_from(remaining).unwrap_or(u32::MAX) }
    }
}
