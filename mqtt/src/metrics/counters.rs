//! Counts of the clients of one application, as they are counted and as its metrics show them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::metrics;

/// Counts the messages of one application, since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    delivered: AtomicU64,
    dropped: AtomicU64,
}

/// The counts of one application, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Clients that are connected now, and messages that wait now.
    pub(crate) connections: usize,
    pub(crate) queued: usize,
    /// Messages that were written to clients, also repeatedly, and that they did not get.
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
}

impl Counters {
    /// Counts messages that were written to a client, also those that were written before.
    pub(crate) fn delivered(&self, messages: u64) {
        self.delivered.fetch_add(messages, Ordering::Relaxed);
    }

    /// Counts messages that a client did not get.
    pub(crate) fn dropped(&self, messages: u64) {
        metrics::dropped(messages);
        self.dropped.fetch_add(messages, Ordering::Relaxed);
    }

    /// Returns the counts since the last call.
    pub(crate) fn take(&self) -> Counts {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Counts { delivered: take(&self.delivered), dropped: take(&self.dropped), ..Counts::default() }
    }
}

impl Counts {
    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if messages were delivered or dropped.
    pub(crate) fn has_counted(&self) -> bool {
        self.delivered > 0 || self.dropped > 0
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.queued += other.queued;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
    }

    /// Forgets the current connections and queue length, and keeps the counts.
    pub(crate) fn forget_now(&mut self) {
        (self.connections, self.queued) = (0, 0);
    }
}
