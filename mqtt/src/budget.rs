//! How much memory the messages take that wait for clients: those of an application, and all together.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use ::metrics::Gauge;

use crate::metrics;

/// Maximum for an application. A message counts once, however many sessions share it.
const APPLICATION_BYTES_MAX: usize = 64 << 20;

/// Maximum for all applications.
const ALL_BYTES_MAX: usize = 1 << 30;

/// What messages take in all applications.
#[derive(Debug, Default)]
pub(crate) struct TotalBudget(Arc<Total>);

/// What the messages of one application take.
#[derive(Debug)]
pub(crate) struct Budget {
    messages: AtomicUsize,
    used: AtomicUsize,
    all: Arc<Total>,
}

#[derive(Debug)]
struct Total {
    used: AtomicUsize,
    queued_messages: Gauge,
    queued_bytes: Gauge,
}

/// What one message takes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    bytes: usize,
    budget: Arc<Budget>,
}

impl Default for Total {
    fn default() -> Self {
        Self {
            used: AtomicUsize::new(0),
            queued_messages: metrics::queued_messages(),
            queued_bytes: metrics::queued_bytes(),
        }
    }
}

impl TotalBudget {
    /// The budget of another application.
    pub(crate) fn application(&self) -> Arc<Budget> {
        Arc::new(Budget { messages: AtomicUsize::new(0), used: AtomicUsize::new(0), all: Arc::clone(&self.0) })
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.used.load(Ordering::Relaxed) > ALL_BYTES_MAX
    }
}

impl Budget {
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.all.used.fetch_add(bytes, Ordering::Relaxed);
        self.all.queued_messages.increment(1.0);
        self.all.queued_bytes.increment(bytes as f64);
        Charge { bytes, budget: Arc::clone(self) }
    }

    /// How many messages wait.
    pub(crate) fn messages(&self) -> usize {
        self.messages.load(Ordering::Relaxed)
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn all_used(&self) -> usize {
        self.all.used.load(Ordering::Relaxed)
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.used() > APPLICATION_BYTES_MAX
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.messages.fetch_sub(1, Ordering::Relaxed);
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        let all = &self.budget.all;
        all.used.fetch_sub(self.bytes, Ordering::Relaxed);
        all.queued_messages.decrement(1.0);
        all.queued_bytes.decrement(self.bytes as f64);
    }
}
