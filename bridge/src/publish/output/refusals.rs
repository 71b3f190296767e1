//! Bounds on messages that the broker refuses.
//!
//! Access control is mended while the bridge runs, so refused messages are published again for a while. They hold
//! places that all devices share, so only a part of these, and once an application has been refused for long enough,
//! what else it sends is dropped at once.

use std::{num::NonZeroUsize, time::Duration};

use link::mqtt::PublishError;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use super::OutputTopic;

/// The pause before a message that the broker refused is published again.
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of kinds of topics that are remembered as refused.
const REFUSED_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

/// Refused kinds of messages, with the time of the first refusal.
pub(super) struct Refusals {
    wait_max: Duration,
    /// One permit for each message that may wait.
    waiting: Semaphore,
    /// By [`OutputTopic::kind`].
    since: Mutex<LruCache<String, Instant>>,
}

impl Refusals {
    pub(super) fn new(wait_max: Duration, in_flight_max: u16) -> Self {
        Self {
            wait_max,
            waiting: Semaphore::new(usize::from(in_flight_max / 4).max(1)),
            since: Mutex::new(LruCache::new(REFUSED_MAX)),
        }
    }

    /// Waits before a message that was first published at `start` is published again; false if it should be dropped.
    pub(super) async fn pause(&self, topic: impl OutputTopic, start: Instant, error: &PublishError) -> bool {
        let since = *self.since.lock().get_or_insert(topic.kind(), || start);
        if since.elapsed() >= self.wait_max || start.elapsed() >= self.wait_max {
            return false;
        }
        let Ok(_permit) = self.waiting.try_acquire() else { return false };
        tracing::warn!(%topic, %error, "cannot publish a message: trying again");
        sleep(PAUSE.min(self.wait_max)).await;
        true
    }

    /// A message was published.
    pub(super) fn end(&self, topic: impl OutputTopic) {
        let mut since = self.since.lock();
        if !since.is_empty() {
            since.pop(&topic.kind());
        }
    }
}
