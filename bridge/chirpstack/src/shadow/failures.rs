//! Failures that ChirpStack reports in `log` events, and the uplinks that they belong to, by deduplication id.

use std::{num::NonZeroUsize, time::Duration};

use lru::LruCache;
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};

/// Maximum number of failures, and of uplinks, that are remembered until the other comes.
const REMEMBERED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);
/// Time that an uplink without an object waits: ChirpStack publishes both at once, in either order.
const WAIT: Duration = Duration::from_secs(2);

/// Matches failures with uplinks, whichever comes first.
pub(super) struct Failures(Mutex<Unmatched>);

struct Unmatched {
    descriptions: LruCache<String, String>,
    uplinks: LruCache<String, oneshot::Sender<String>>,
}

impl Failures {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Unmatched {
            descriptions: LruCache::new(REMEMBERED_MAX),
            uplinks: LruCache::new(REMEMBERED_MAX),
        }))
    }

    pub(super) fn add(&self, deduplication_id: String, description: String) {
        let mut unmatched = self.0.lock();
        match unmatched.uplinks.pop(&deduplication_id) {
            // It fails if the uplink has just stopped waiting.
            Some(uplink) => _ = uplink.send(description),
            None => _ = unmatched.descriptions.put(deduplication_id, description),
        }
    }

    /// Waits for the description of the codec's failure in ChirpStack; `None` if it did not fail.
    pub(super) async fn of(&self, deduplication_id: &str) -> Option<String> {
        let description = {
            let mut unmatched = self.0.lock();
            if let Some(description) = unmatched.descriptions.pop(deduplication_id) {
                return Some(description);
            }
            let (uplink, description) = oneshot::channel();
            unmatched.uplinks.put(deduplication_id.to_owned(), uplink);
            description
        };
        timeout(WAIT, description).await.ok()?.ok()
    }
}
