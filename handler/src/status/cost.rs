//! Cost of a message in the sandbox.

use std::time::Duration;

/// Resources that a message used in the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Units of fuel: the same for the same message on every machine.
    pub fuel: u64,
    /// Wall-clock time of the call, without the wait for a worker.
    pub elapsed: Duration,
}

impl Cost {
    pub(crate) fn microseconds(&self) -> u64 {
        u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX)
    }
}
