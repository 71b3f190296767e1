//! What an operator may set about running functions.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;

/// How functions are run: where, how many at once, within which limits.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Folder that keeps the compiled sandbox and loaded functions between starts; not kept when absent.
    pub cache_dir: Option<PathBuf>,
    /// The most that loaded functions take in that folder, in bytes; the oldest go first. With 0 none are kept.
    pub cache_bytes_max: u64,
    /// Threads that run functions; 0 means one per processor.
    pub workers: usize,
    /// Messages that may wait for a worker; more are refused.
    pub queue_max: usize,
    /// Messages of one application that may wait for a worker. When many wait it is fewer, so that there is room for
    /// others.
    pub tenant_queue_max: usize,
    /// Function sets that have a memory of their own with one worker; each takes up to 3 MiB and an open file. The others
    /// share one, which costs each of their messages some µs more.
    pub hot_max: usize,
    /// Messages of one function set that a worker must have met lately to give it a memory of its own, which takes as
    /// long as some tens of messages.
    pub hot_after: u32,
    /// What one function set and one message may use.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cache_dir: None,
            cache_bytes_max: 1 << 30,
            workers: 0,
            queue_max: 1024,
            tenant_queue_max: 256,
            hot_max: 32,
            hot_after: 8,
            limits: Limits::default(),
        }
    }
}

impl Settings {
    /// Rejects settings that cannot work.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.queue_max == 0 || self.tenant_queue_max == 0 {
            return Err("`queue_max` and `tenant_queue_max` must be at least 1, or every message is refused");
        }
        self.limits.check()
    }
}
