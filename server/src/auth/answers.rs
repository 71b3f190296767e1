//! What the account service answered, remembered for a few seconds.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::OnceCell;
use types::Timestamp;

/// How long an answer counts: a deleted key and a right that was taken away stop working within this time.
///
/// Together with the broker's checks of open connections it stays under the 5 seconds that revoking may take.
const AGE_MAX: Duration = Duration::from_secs(2);
/// The most answers that are remembered; beyond, the oldest makes room.
const ENTRIES_MAX: usize = 4096;

/// What the account service said. Empty while it is being asked.
///
/// Whoever fills the cell asks; the others with the same question wait for that one answer.
pub(super) type Answer<V> = Arc<OnceCell<V>>;

/// The answers of the last seconds by their questions, refusals included.
pub(super) struct Answers<K, V> {
    entries: Mutex<HashMap<K, Entry<V>>>,
}

struct Entry<V> {
    since: Timestamp,
    answer: Answer<V>,
}

impl<K, V> Default for Answers<K, V> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash, V> Answers<K, V> {
    /// The place of the answer to this question, perhaps still empty.
    pub(super) fn answer(&self, name: &K, now: Timestamp) -> Answer<V> {
        let mut entries = self.lock();
        if let Some(entry) = entries.get(name).filter(|entry| entry.is_fresh(now)) {
            return Arc::clone(&entry.answer);
        }
        make_room(&mut entries, now);
        let answer = Answer::default();
        entries.insert(name.clone(), Entry { since: now, answer: Arc::clone(&answer) });
        answer
    }

    /// Forgets a question that could not be asked.
    pub(super) fn forget(&self, name: &K, answer: &Answer<V>) {
        let mut entries = self.lock();
        if entries.get(name).is_some_and(|entry| Arc::ptr_eq(&entry.answer, answer) && !answer.initialized()) {
            entries.remove(name);
        }
    }

    /// How many answers are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Entry<V>>> {
        // A panic elsewhere leaves a memory as good as before.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Entry<V> {
    fn is_fresh(&self, now: Timestamp) -> bool {
        // What seems to come from the future was asked before the clock was set back.
        self.since <= now && now.since(self.since) < AGE_MAX
    }
}

fn make_room<K: Clone + Eq + Hash, V>(entries: &mut HashMap<K, Entry<V>>, now: Timestamp) {
    if entries.len() < ENTRIES_MAX {
        return;
    }
    entries.retain(|_, entry| entry.is_fresh(now));
    if entries.len() >= ENTRIES_MAX
        && let Some(oldest) = entries.iter().min_by_key(|(_, entry)| entry.since).map(|(name, _)| name.clone())
    {
        entries.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_answer_is_shared_until_it_is_too_old() {
        let answers: Answers<usize, ()> = Answers::default();
        let start = Timestamp::from_millis(1_000_000);
        let first = answers.answer(&1, start);
        assert!(Arc::ptr_eq(&first, &answers.answer(&1, start.plus(Duration::from_millis(1_999)))));
        assert!(!Arc::ptr_eq(&first, &answers.answer(&2, start)));
        assert!(!Arc::ptr_eq(&first, &answers.answer(&1, start.plus(AGE_MAX))));
        let later = answers.answer(&3, start.plus(Duration::from_secs(3600)));
        assert!(!Arc::ptr_eq(&later, &answers.answer(&3, start)), "the clock was set back");
    }

    #[test]
    fn never_remembers_more_than_it_may() {
        let answers: Answers<usize, ()> = Answers::default();
        for number in 0..ENTRIES_MAX + 10 {
            answers.answer(&number, Timestamp::from_millis(number as i64 / 10));
        }
        assert_eq!(answers.len(), ENTRIES_MAX);
        let answer = answers.answer(&0, Timestamp::from_millis(60_000));
        assert_eq!(answers.len(), 1);
        answers.forget(&0, &Answer::default());
        assert_eq!(answers.len(), 1, "it is not that one");
        answers.forget(&0, &answer);
        assert_eq!(answers.len(), 0);
    }
}
