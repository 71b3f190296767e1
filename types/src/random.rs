//! Randomness, passed in so that tests can control it.

/// A source of random bytes.
pub trait Random: Send + Sync {
    /// Fills `bytes` with unpredictable values, except in tests.
    fn fill(&self, bytes: &mut [u8]);
}
