//! The part of the tests' harness that their driver needs.

use std::time::Duration;

/// Maximum time for anything that is waited for.
pub(crate) const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);
