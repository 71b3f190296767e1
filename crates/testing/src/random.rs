//! Randomness that a test can predict.

use std::sync::atomic::{AtomicU64, Ordering};

use types::Random;

/// The same bytes for every request, repeated as often as it takes.
#[derive(Debug)]
pub struct FixedRandom(Vec<u8>);

impl FixedRandom {
    /// Fills every request with `bytes`, of which there is at least one.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }
}

impl Random for FixedRandom {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.iter_mut().zip(self.0.iter().cycle()).for_each(|(byte, fixed)| *byte = *fixed);
    }
}

/// The numbers 0, 1, 2, …: each fills one request with its eight bytes, the most significant first.
#[derive(Debug, Default)]
pub struct CountingRandom(AtomicU64);

impl Random for CountingRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        bytes.iter_mut().zip(number).for_each(|(byte, number)| *byte = number);
    }
}
