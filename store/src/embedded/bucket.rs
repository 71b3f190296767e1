//! Rate limits of one process: they live in memory, for a token is not worth a write to disk.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::{Key, Rate, Token, UnixMillis};

/// How many buckets that are not full are remembered.
const BUCKETS_MAX: usize = 1 << 16;

/// When each bucket is full again, in microseconds since 1970; a bucket that is not here is full.
#[derive(Default)]
pub(super) struct Buckets(Mutex<HashMap<Key, u64>>);

impl Buckets {
    /// Takes a token, or says how long to wait.
    pub(super) fn take(&self, key: &Key, rate: Rate, now: UnixMillis) -> Token {
        let now = now.saturating_mul(1000);
        // Whoever panicked here left the map whole: every change to it is one call.
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (token, full_at) = rate.take(now, buckets.get(key).copied().unwrap_or(0));
        if let Some(full_at) = full_at {
            make_room(&mut buckets, key, now);
            buckets.insert(key.clone(), full_at);
        }
        token
    }
}

/// Forgets the buckets that are full, and when that is not enough the one that is full next.
fn make_room(buckets: &mut HashMap<Key, u64>, key: &Key, now: u64) {
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
