//! What an operator may set about running functions.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How functions are run: where, how many at once, within which limits.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Folder that keeps the compiled sandbox between starts; not kept when absent.
    pub cache_dir: Option<PathBuf>,
    /// Threads that run functions; 0 means one per processor.
    pub workers: usize,
    /// Messages that may wait for one worker; more are refused.
    pub queue_max: usize,
    /// Function sets that one worker keeps mapped; each takes up to 3 MiB of memory and an open file.
    pub hot_max: usize,
    /// What one function set and one message may use.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self { cache_dir: None, workers: 0, queue_max: 256, hot_max: 32, limits: Limits::default() }
    }
}

/// What one function set and one message may use.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Longest text of one function, in bytes. Published vendor codecs reach 235 kB, far over the 40 960 bytes that
    /// other servers allow.
    pub source_bytes_max: usize,
    /// Fuel for all functions that one message meets; the normal limit, the same on every machine.
    pub fuel: u64,
    /// Fuel for parsing and evaluating a function set once.
    pub load_fuel: u64,
    /// Linear memory of one sandbox, in bytes; rounded down to 64 KiB.
    pub memory_bytes_max: usize,
    /// JavaScript heap inside that memory, in bytes; beyond it a function sees an out-of-memory error.
    pub heap_bytes_max: u32,
    /// What evaluating a function set may leave in that heap, in bytes: it is kept for as long as the set is loaded.
    /// The largest published codecs leave less than 1 MiB.
    pub kept_bytes_max: usize,
    /// Wall-clock time of one message, in milliseconds; an alarm rather than a limit, fuel should end it first.
    pub time_ms_max: u64,
    /// Wall-clock time of parsing and evaluating a function set, in milliseconds.
    pub load_time_ms_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes_max: 262_144,
            fuel: 250_000_000,
            load_fuel: 1_000_000_000,
            memory_bytes_max: 16 << 20,
            heap_bytes_max: 12 << 20,
            kept_bytes_max: 4 << 20,
            time_ms_max: 1_000,
            load_time_ms_max: 5_000,
        }
    }
}
