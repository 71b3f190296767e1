//! Rate limit buckets of one process, in memory: a token is not worth a write to disk.

use std::{collections::HashMap, hash::Hash};

use parking_lot::Mutex;

use crate::{Rate, TakenToken, TakenTokens, UnixMillis};

/// Maximum number of buckets; full ones are not stored.
const BUCKETS_MAX: usize = 1 << 16;
/// Tolerated difference between two tasks' readings of one clock, in microseconds; a clock that goes back further was
/// set back.
const READINGS_DIFFER_MAX: u64 = 1_000_000;

/// Rate limit buckets by key, for one process: at most 65,536.
pub struct Buckets<K>(Mutex<FillTimes<K>>);

struct FillTimes<K> {
    /// Time at which each bucket will be full, in `time`; a missing bucket is full.
    full_at: HashMap<K, u64>,
    time: Time,
}

/// The time in which buckets fill: microseconds since 1970, plus all that the clock was set back by.
///
/// It never goes back, so a clock that was set back neither empties a bucket nor keeps it from filling.
#[derive(Default)]
struct Time {
    latest: u64,
    ahead: u64,
}

impl Time {
    fn at(&mut self, clock: u64) -> u64 {
        let behind = self.latest.saturating_sub(clock.saturating_add(self.ahead));
        if behind > READINGS_DIFFER_MAX {
            self.ahead = self.ahead.saturating_add(behind);
        }
        self.latest = self.latest.max(clock.saturating_add(self.ahead));
        self.latest
    }
}

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self(Mutex::new(FillTimes { full_at: HashMap::new(), time: Time::default() }))
    }
}

impl<K: Clone + Eq + Hash> Buckets<K> {
    /// Takes a token from the bucket of `key`, or returns the time until there is one.
    pub fn take(&self, key: &K, rate: Rate, now: UnixMillis) -> TakenToken {
        self.take_several(key, rate, 1, now).into()
    }

    /// Takes as many of `wanted` tokens from the bucket of `key` as there are.
    pub(crate) fn take_several(&self, key: &K, rate: Rate, wanted: u32, now: UnixMillis) -> TakenTokens {
        // Every change of the map is one call, so a panic cannot have left it inconsistent.
        let mut state = self.0.lock();
        let now = state.time.at(now.saturating_mul(1000));
        let full_at = state.full_at.get(key).copied().unwrap_or(0);
        let (tokens, full_at) = rate.take_several(now, full_at, wanted);
        if let Some(full_at) = full_at {
            make_room(&mut state.full_at, key, now);
            state.full_at.insert(key.clone(), full_at);
        }
        tokens
    }

    /// Returns a token that was taken from the bucket of `key`.
    pub fn give_back(&self, key: &K, rate: Rate) {
        let mut state = self.0.lock();
        if let Some(full_at) = state.full_at.get_mut(key) {
            // A bucket that was full in the past is just as full now.
            *full_at = full_at.saturating_sub(rate.per_micros());
        }
    }
}

/// Removes the buckets that are full, or else the one that will be full next.
fn make_room<K: Clone + Eq + Hash>(buckets: &mut HashMap<K, u64>, key: &K, now: u64) {
    if buckets.len() < BUCKETS_MAX || buckets.contains_key(key) {
        return;
    }
    buckets.retain(|_, full_at| *full_at > now);
    if buckets.len() >= BUCKETS_MAX
        && let Some(next) = buckets.iter().min_by_key(|(_, full_at)| **full_at).map(|(key, _)| key.clone())
    {
        buckets.remove(&next);
    }
}
