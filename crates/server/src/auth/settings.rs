//! Settings of authentication.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Checks of credentials at the account service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSettings {
    /// Time that a credential that the account service confirmed may still read and use MQTT while that service cannot
    /// be asked, in seconds. With 0 it may not. Changes always need a fresh response; live uplinks go on either way.
    pub grace_time_s: u64,
}

impl Default for AuthSettings {
    /// Ten minutes.
    fn default() -> Self {
        Self { grace_time_s: 600 }
    }
}

impl AuthSettings {
    pub(super) fn grace_time(&self) -> Duration {
        Duration::from_secs(self.grace_time_s)
    }
}
