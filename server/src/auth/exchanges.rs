//! Access keys that were exchanged for claims, remembered for a few seconds.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::OnceCell;
use types::{AccessKey, AppId, Claims, Timestamp};

/// How long an answer counts: a deleted key stops working within this time.
///
/// Together with the broker's checks of open connections it stays under the 5 seconds that revoking may take.
const AGE_MAX: Duration = Duration::from_secs(2);
/// The most answers that are remembered; beyond, the oldest makes room.
const ENTRIES_MAX: usize = 4096;

/// What the account service said about a key: its claims, or that it is refused. Empty while it is being asked.
///
/// Whoever fills the cell asks; the others with the same key wait for that one answer.
pub(super) type Answer = Arc<OnceCell<Option<Claims>>>;

/// The answers of the last seconds, refusals included.
#[derive(Default)]
pub(super) struct Exchanges {
    entries: Mutex<HashMap<(AppId, AccessKey), Entry>>,
}

struct Entry {
    since: Timestamp,
    answer: Answer,
}

impl Exchanges {
    /// The place of the answer for this key, perhaps still empty.
    pub(super) fn answer(&self, app_id: &AppId, key: &AccessKey, now: Timestamp) -> Answer {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (app_id.clone(), key.clone());
        if let Some(entry) = entries.get(&name).filter(|entry| entry.is_fresh(now)) {
            return Arc::clone(&entry.answer);
        }
        make_room(&mut entries, now);
        let answer = Answer::default();
        entries.insert(name, Entry { since: now, answer: Arc::clone(&answer) });
        answer
    }

    /// How many answers are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Entry {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.since(self.since) < AGE_MAX
    }
}

fn make_room(entries: &mut HashMap<(AppId, AccessKey), Entry>, now: Timestamp) {
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

    fn key(number: usize) -> AccessKey {
        format!("issuer.{number}").parse().unwrap()
    }

    #[test]
    fn an_answer_is_shared_until_it_is_too_old() {
        let (exchanges, app_id) = (Exchanges::default(), "my-app".parse().unwrap());
        let start = Timestamp::from_millis(1_000_000);
        let first = exchanges.answer(&app_id, &key(1), start);
        assert!(Arc::ptr_eq(&first, &exchanges.answer(&app_id, &key(1), start.plus(Duration::from_millis(1_999)))));
        assert!(!Arc::ptr_eq(&first, &exchanges.answer(&app_id, &key(2), start)));
        assert!(!Arc::ptr_eq(&first, &exchanges.answer(&app_id, &key(1), start.plus(AGE_MAX))));
    }

    #[test]
    fn never_remembers_more_than_it_may() {
        let (exchanges, app_id) = (Exchanges::default(), "my-app".parse().unwrap());
        for number in 0..ENTRIES_MAX + 10 {
            exchanges.answer(&app_id, &key(number), Timestamp::from_millis(number as i64 / 10));
        }
        assert_eq!(exchanges.len(), ENTRIES_MAX);
        exchanges.answer(&app_id, &key(0), Timestamp::from_millis(60_000));
        assert_eq!(exchanges.len(), 1);
    }
}
