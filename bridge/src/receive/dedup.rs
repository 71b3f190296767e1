//! Recognizes messages that were dealt with a short time ago.

use std::{
    hash::{BuildHasher, Hash, RandomState},
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};

use lru::LruCache;
use parking_lot::Mutex;
use types::{Clock, Timestamp};

/// The messages of a window. Their hashes are keyed at random, so nobody can make two of them equal.
pub struct Dedup {
    seen: Mutex<LruCache<u64, Timestamp>>,
    hasher: RandomState,
    window: Duration,
    clock: Arc<dyn Clock>,
}

/// Identifies a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageKey(u64);

impl Dedup {
    /// Remembers `messages_max` messages, each for as long as `window`.
    pub fn new(messages_max: usize, window: Duration, clock: Arc<dyn Clock>) -> Self {
        let messages_max = NonZeroUsize::new(messages_max).unwrap_or(NonZeroUsize::MIN);
        Self { seen: Mutex::new(LruCache::new(messages_max)), hasher: RandomState::new(), window, clock }
    }

    /// The key of a message with this topic, and these bytes or this id.
    pub fn key(&self, topic: impl Hash, content: impl Hash) -> MessageKey {
        MessageKey(self.hasher.hash_one((topic, content)))
    }

    /// The key of a message that its source identifies by `id`, or by all its bytes if that is empty.
    pub fn key_by_id(&self, topic: impl Hash, id: &str, payload: &[u8]) -> MessageKey {
        if id.is_empty() { self.key(topic, payload) } else { self.key(topic, id) }
    }

    /// Returns true if the message was added within the window.
    pub fn contains(&self, key: MessageKey) -> bool {
        let now = self.clock.now();
        let mut seen = self.seen.lock();
        seen.get(&key.0).is_some_and(|added| now.since(*added) < self.window)
    }

    /// Adds a message that has been dealt with.
    pub fn add(&self, key: MessageKey) {
        let now = self.clock.now();
        self.seen.lock().put(key.0, now);
    }
}

#[cfg(test)]
mod tests {
    use testing::ManualClock;

    use super::*;

    #[test]
    fn a_message_is_a_duplicate_within_the_window_only() {
        let clock = ManualClock::new();
        let dedup = Dedup::new(2, Duration::from_secs(10), clock.clone());
        let key = dedup.key("a/up", "id");
        assert!(!dedup.contains(key));
        dedup.add(key);
        assert!(dedup.contains(dedup.key("a/up", "id")));
        assert!(!dedup.contains(dedup.key("a/join", "id")));
        clock.advance(Duration::from_secs(10));
        assert!(!dedup.contains(key));
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let dedup = Dedup::new(2, Duration::from_secs(10), ManualClock::new());
        let keys = ["a", "b", "c"].map(|id| dedup.key("up", id));
        keys.iter().for_each(|key| dedup.add(*key));
        assert_eq!(keys.map(|key| dedup.contains(key)), [false, true, true]);
    }
}
