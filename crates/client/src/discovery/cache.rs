//! Announcements of the last minute.
//!
//! Not `moka`: its clock cannot be paused in tests, and one bound for all entries is enough here.

use std::{collections::HashMap, fmt, time::Duration};

use api::discovery::Announcement;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use types::{ComponentId, ServiceName};

/// Lifetime of an entry.
const AGE_MAX: Duration = Duration::from_secs(60);
/// Maximum number of entries; when there are more, all are removed.
const ENTRIES_MAX: usize = 1000;

pub(super) type Key = (ServiceName, Option<ComponentId>);

#[derive(Default)]
pub(super) struct Cache {
    entries: Mutex<HashMap<Key, (Instant, Vec<Announcement>)>>,
}

impl Cache {
    pub(super) fn get(&self, key: &Key) -> Option<Vec<Announcement>> {
        let entries = self.lock();
        let (created, announcements) = entries.get(key)?;
        (created.elapsed() < AGE_MAX).then(|| announcements.clone())
    }

    pub(super) fn insert(&self, key: Key, announcements: &[Announcement]) {
        let mut entries = self.lock();
        if entries.len() >= ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(key, (Instant::now(), announcements.to_vec()));
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, (Instant, Vec<Announcement>)>> {
        // Every change of the map is one call, so a panic cannot have left it inconsistent.
        self.entries.lock()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Cache").field("entries", &self.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: Clients cache responses for a minute
    #[tokio::test(start_paused = true)]
    async fn keeps_an_entry_for_a_minute_or_until_it_is_cleared() {
        let (cache, key) = (Cache::default(), (ServiceName::Handler, None));
        let announcements = [Announcement { id: "one".into(), ..Default::default() }];
        cache.insert(key.clone(), &announcements);
        tokio::time::advance(AGE_MAX - Duration::from_millis(1)).await;
        assert_eq!(cache.get(&key).unwrap(), announcements);
        assert!(cache.get(&(ServiceName::Broker, None)).is_none());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(cache.get(&key).is_none());
        cache.insert(key.clone(), &announcements);
        cache.clear();
        assert!(cache.get(&key).is_none());
        for number in 0..2 * ENTRIES_MAX {
            cache.insert((ServiceName::Handler, Some(format!("id-{number}").parse().unwrap())), &announcements);
        }
        assert!(cache.lock().len() <= ENTRIES_MAX);
    }
}
