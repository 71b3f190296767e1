//! Randomness, passed in so that tests can control it.

/// A source of random bytes.
pub trait Random: Send + Sync {
    /// Fills `bytes` with unpredictable values, except in tests.
    fn fill(&self, bytes: &mut [u8]);
}

impl dyn Random + '_ {
    /// An array of random bytes.
    pub fn array<const COUNT: usize>(&self) -> [u8; COUNT] {
        let mut bytes = [0; COUNT];
        self.fill(&mut bytes);
        bytes
    }
}
