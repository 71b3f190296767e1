//! Randomness, given to whoever needs it so that tests can choose it.

/// A source of random bytes.
pub trait Random: Send + Sync {
    /// Fills `bytes`; unpredictable to others unless in a test.
    fn fill(&self, bytes: &mut [u8]);
}
