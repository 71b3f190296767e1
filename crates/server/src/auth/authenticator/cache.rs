//! The account service's responses of the last few seconds, and the questions that it has yet to answer.
//!
//! Not `moka`: it reads the machine's clock, and here the clock is given.

use std::{hash::Hash, time::Duration};

use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::watch;
use types::Timestamp;

use crate::auth::memory::CREDENTIALS_MAX;

/// Time for which a response is used: a deleted key or a lost right takes effect within this time.
///
/// Together with the MQTT server's checks of open connections it stays below the 5 seconds that revoking may take.
const AGE_MAX: Duration = Duration::from_secs(2);
/// Maximum number of entries; when there are more, the oldest is removed. As many as there are confirmed credentials,
/// so that as many applications in turn ask once in [`AGE_MAX`] each.
const ENTRIES_MAX: usize = CREDENTIALS_MAX;

/// Outcome of a question; `None` while it is being asked.
pub(super) type PendingResponse<V, E> = watch::Receiver<Option<Result<V, E>>>;

/// Recent responses by key, refusals included. A question without a response is not kept.
pub(super) struct Cache<K: Eq + Hash, V, E> {
    /// In the order in which they were asked: reading does not move them.
    entries: Mutex<LruCache<K, CachedResponse<V, E>>>,
}

struct CachedResponse<V, E> {
    asked: Timestamp,
    outcome: PendingResponse<V, E>,
}

impl<K: Eq + Hash, V, E> Default for Cache<K, V, E> {
    fn default() -> Self {
        Self { entries: Mutex::new(LruCache::unbounded()) }
    }
}

impl<K: Clone + Eq + Hash, V: Clone, E> Cache<K, V, E> {
    /// The response to a question that was asked just now.
    pub(super) fn response(&self, key: &K, now: Timestamp) -> Option<V> {
        let entries = self.entries.lock();
        entries.peek(key).filter(|entry| entry.is_recent(now))?.response()
    }

    /// The outcome of the question that is being asked, or was just answered; otherwise of `ask`, which starts one.
    pub(super) fn join_or(
        &self,
        key: &K,
        now: Timestamp,
        ask: impl FnOnce() -> PendingResponse<V, E>,
    ) -> PendingResponse<V, E> {
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.peek(key)
            && (entry.is_pending() || entry.is_recent(now) && entry.response().is_some())
        {
            return entry.outcome.clone();
        }
        make_room(&mut entries, now);
        let outcome = ask();
        entries.put(key.clone(), CachedResponse { asked: now, outcome: outcome.clone() });
        outcome
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.lock().len()
    }
}

impl<V: Clone, E> CachedResponse<V, E> {
    fn is_recent(&self, now: Timestamp) -> bool {
        // An entry from the future was created before the clock was set back.
        self.asked <= now && now.since(self.asked) < AGE_MAX
    }

    /// Returns true if the question is still being asked, and false if whoever asked it is gone.
    fn is_pending(&self) -> bool {
        self.outcome.borrow().is_none() && self.outcome.has_changed().is_ok()
    }

    fn response(&self) -> Option<V> {
        self.outcome.borrow().as_ref()?.as_ref().ok().cloned()
    }
}

/// Removes the oldest entries: those that are of no use any more, up to a question that is still asked, and one if there
/// is no room.
fn make_room<K: Eq + Hash, V: Clone, E>(entries: &mut LruCache<K, CachedResponse<V, E>>, now: Timestamp) {
    while let Some((_, oldest)) = entries.peek_lru()
        && (entries.len() >= ENTRIES_MAX || !oldest.is_recent(now) && !oldest.is_pending())
    {
        entries.pop_lru();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Sender = watch::Sender<Option<Result<u8, ()>>>;

    /// Joins the question about a key, and tells whether it had to be asked.
    fn ask(cache: &Cache<usize, u8, ()>, key: usize, now: Timestamp) -> Option<Sender> {
        let mut asked = None;
        cache.join_or(&key, now, || {
            let (sender, outcome) = watch::channel(None);
            asked = Some(sender);
            outcome
        });
        asked
    }

    #[test]
    fn a_response_is_used_for_two_seconds_after_the_question() {
        let (cache, start) = (Cache::default(), Timestamp::from_millis(1_000_000));
        let sender = ask(&cache, 1, start).unwrap();
        assert_eq!(cache.response(&1, start), None);
        let later = start.plus(Duration::from_millis(1_999));
        assert!(ask(&cache, 1, later).is_none() && ask(&cache, 2, later).is_some());
        sender.send_replace(Some(Ok(7)));
        assert_eq!((cache.response(&1, later), cache.response(&1, start.plus(AGE_MAX))), (Some(7), None));
        assert_eq!(cache.response(&1, Timestamp::from_millis(0)), None, "the clock was set back");
        assert!(ask(&cache, 1, later).is_none() && ask(&cache, 1, start.plus(AGE_MAX)).is_some());
    }

    #[test]
    fn a_question_is_joined_for_as_long_as_it_is_asked_and_its_failure_is_not_kept() {
        let (cache, start) = (Cache::default(), Timestamp::from_millis(1_000_000));
        let later = start.plus(Duration::from_secs(4));
        let sender = ask(&cache, 1, start).unwrap();
        assert!(ask(&cache, 1, later).is_none());
        sender.send_replace(Some(Err(())));
        let sender = ask(&cache, 1, later).unwrap();
        assert!(ask(&cache, 1, later).is_none());
        drop(sender);
        assert!(ask(&cache, 1, later).is_some(), "whoever asked is gone");
    }

    #[test]
    fn never_holds_more_than_the_limit() {
        let cache = Cache::default();
        let senders: Vec<_> = (0..ENTRIES_MAX + 10)
            .map(|number| ask(&cache, number, Timestamp::from_millis(number as i64 / 10)).unwrap())
            .collect();
        assert_eq!(cache.len(), ENTRIES_MAX);
        drop(senders);
        ask(&cache, 0, Timestamp::from_millis(60_000));
        assert_eq!(cache.len(), 1);
    }
}
