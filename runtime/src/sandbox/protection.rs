//! Decides when a memory is protected: once its messages keep to the same pages.
//!
//! In a protected memory, pages that messages leave unchanged are read-only. So it needs no system call to show that a
//! message has changed no other page, which takes as long as a tenth of a small message. A message that does write
//! to another page is stopped, and runs again without protection.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages in a row without a page fault after which a memory is protected for the first time.
const QUIET_MIN: u32 = 64;
/// Factor by which this number grows with each message that had to run again, and its maximum.
const QUIET_FACTOR: u32 = 8;
const QUIET_MAX: u32 = 1 << 20;

/// The protection of one memory.
pub(crate) struct Protection {
    /// Messages in a row without a page fault.
    quiet: u32,
    quiet_needed: u32,
    /// Held while the memory may be protected, because the system limits how many can be.
    permit: Option<OwnedSemaphorePermit>,
}

impl Default for Protection {
    fn default() -> Self {
        Self { quiet: 0, quiet_needed: QUIET_MIN, permit: None }
    }
}

impl Protection {
    /// Counts a message of a memory without protection, and returns true if it should be protected now.
    pub(crate) fn is_due(&mut self, no_faults: bool, permits: &Arc<Semaphore>) -> bool {
        self.permit = None;
        self.quiet = if no_faults { self.quiet + 1 } else { 0 };
        if self.quiet < self.quiet_needed {
            return false;
        }
        self.quiet = 0;
        self.permit = Arc::clone(permits).try_acquire_owned().ok();
        self.permit.is_some()
    }

    /// Waits longer until the memory is protected again.
    pub(crate) fn postpone(&mut self) {
        *self = Self { quiet_needed: self.quiet_needed.saturating_mul(QUIET_FACTOR).min(QUIET_MAX), ..Self::default() };
    }
}
