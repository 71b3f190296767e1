//! How much fuel an uplink is expected to use.

use std::sync::atomic::{AtomicU64, Ordering};

/// The most fuel that an uplink used lately: a slowly decaying maximum.
#[derive(Debug, Default)]
pub(super) struct ExpectedFuel(AtomicU64);

impl ExpectedFuel {
    /// None before the first.
    pub(super) fn expected(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|fuel| *fuel > 0)
    }

    /// Adds what several used. An estimate: of several that add at the same time, one may be lost.
    pub(super) fn add(&self, used: impl Iterator<Item = u64>) {
        let before = self.0.load(Ordering::Relaxed);
        let most = used.max().unwrap_or_default().max(before - before / 8);
        self.0.store(most, Ordering::Relaxed);
    }
}
