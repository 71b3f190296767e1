//! Rate limit buckets of one process, in memory: a token is not worth a write to disk.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
};

use crate::{Rate, TakenToken, UnixMillis};

/// Maximum number of buckets; full ones are not stored.
const BUCKETS_MAX: usize = 1 << 16;

/// Rate limit buckets by key, for one process: at most 65,536.
///
/// Holds when each bucket will be full, in microseconds since 1970; a missing bucket is full.
pub struct Buckets<K>(Mutex<HashMap<K, u64>>);

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Buckets<K> {
    /// Takes a token from the bucket of `key`, or returns how long to wait for one.
    pub fn take(&self, key: &K, rate: Rate, now: UnixMillis) -> TakenToken {
        let now = now.saturating_mul(1000);
        // Every change of the map is one call, so a panic cannot have left it inconsistent.
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (token, full_at) = rate.take(now, buckets.get(key).copied().unwrap_or(0));
        if let Some(full_at) = full_at {
            make_room(&mut buckets, key, now);
            buckets.insert(key.clone(), full_at);
        }
        token
    }

    /// Returns a token that was taken from the bucket of `key`.
    pub fn give_back(&self, key: &K, rate: Rate) {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full_at) = buckets.get_mut(key) {
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
