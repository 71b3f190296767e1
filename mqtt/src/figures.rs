//! What the clients of one application got and did not get, until it is added to the application's metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::metrics;

/// Messages of one application, counted since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    delivered: AtomicU64,
    dropped: AtomicU64,
}

/// How many messages were written to clients, and how many were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
}

impl Figures {
    /// Counts messages that were written to a client, also those that were written before.
    pub(crate) fn delivered(&self, messages: u64) {
        self.delivered.fetch_add(messages, Ordering::Relaxed);
    }

    /// Counts messages that a client did not get.
    pub(crate) fn dropped(&self, messages: u64) {
        metrics::dropped(messages);
        self.dropped.fetch_add(messages, Ordering::Relaxed);
    }

    /// What was counted since this was last called.
    pub(crate) fn take(&self) -> Counted {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Counted { delivered: take(&self.delivered), dropped: take(&self.dropped) }
    }
}
