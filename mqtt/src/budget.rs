//! How much memory the messages take that wait for clients: those of an application, and all together.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Maximum for an application. A message counts once, however many sessions share it.
const APPLICATION_BYTES_MAX: usize = 64 << 20;

/// Maximum for all applications.
const ALL_BYTES_MAX: usize = 1 << 30;

/// What messages take in all applications.
#[derive(Debug, Default)]
pub(crate) struct TotalBudget(Arc<AtomicUsize>);

/// What the messages of one application take.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: AtomicUsize,
    all: Arc<AtomicUsize>,
}

/// What one message takes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    bytes: usize,
    budget: Arc<Budget>,
}

impl TotalBudget {
    /// The budget of another application.
    pub(crate) fn application(&self) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicUsize::new(0), all: Arc::clone(&self.0) })
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.load(Ordering::Relaxed) > ALL_BYTES_MAX
    }
}

impl Budget {
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.all.fetch_add(bytes, Ordering::Relaxed);
        Charge { bytes, budget: Arc::clone(self) }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn all_used(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.used() > APPLICATION_BYTES_MAX
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
