//! The operator's settings for running functions.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::Limits;

/// Settings of the sandbox.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Directory that caches loaded functions between starts. If unset, nothing is cached.
    pub cache_dir: Option<PathBuf>,
    /// Maximum size of cached functions in that directory, in bytes; the oldest are deleted first. Zero caches none.
    pub cache_bytes_max: u64,
    /// Worker threads that run functions. Zero means one per processor.
    pub workers: usize,
    /// Maximum number of messages that wait for a worker; further ones are refused.
    pub queue_max: usize,
    /// Maximum number of messages of one application that wait for a worker. The more others wait, the lower it is, so
    /// that every application finds room.
    pub tenant_queue_max: usize,
    /// Function sets per worker with their own memory (hot); each takes up to 3 MiB and an open file. The others share
    /// one, which adds some µs to each of their messages.
    pub hot_max: usize,
    /// Recent messages that make a function set hot on a worker. Giving it its own memory takes as long as some tens of
    /// messages.
    pub hot_after: u32,
    /// Limits of a function set and of a message.
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
    /// Refuses settings that cannot work.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.queue_max == 0 || self.tenant_queue_max == 0 {
            return Err("`queue_max` and `tenant_queue_max` must be at least 1, or every message is refused");
        }
        self.limits.check()
    }
}
