//! How much is kept.

use std::collections::BTreeMap;

use types::AppId;

/// How much is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes on disk of each application.
    pub applications: BTreeMap<AppId, u64>,
}
