//! The limits of a function set and of a message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one function set and one message may use.
///
/// The defaults are measured: of 277 published vendor codecs with 2,099 messages the worst uses at most a tenth of
/// `fuel`, `load_fuel`, `heap_bytes_max` and `kept_bytes_max`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Longest text of one function, in bytes. Published vendor codecs reach 235 kB, far over the 40 960 bytes that
    /// other servers allow.
    pub source_bytes_max: usize,
    /// Longest payload that a function gets, in bytes.
    pub input_bytes_max: usize,
    /// Fuel for all functions that one message meets; the normal limit, the same on every machine. A median codec uses
    /// 25 thousand, the worst published one 6.3 million.
    pub fuel: u64,
    /// Fuel for parsing and evaluating a function set once; the worst published one uses 32 million.
    pub load_fuel: u64,
    /// Linear memory of one sandbox, in bytes; rounded down to 64 KiB.
    pub memory_bytes_max: usize,
    /// JavaScript heap inside that memory, in bytes; beyond it a function sees an out-of-memory error.
    /// The worst published codec needs 650 KiB, of which 330 are the engine's own.
    pub heap_bytes_max: u32,
    /// What evaluating a function set may leave in that heap, in bytes of whole pages of 4 KiB that it changed.
    /// The worst published codec changes 708 KiB.
    pub kept_bytes_max: usize,
    /// Longest result in bytes of JSON, and the longest JSON that an encoder gets.
    pub fields_bytes_max: u32,
    /// How deep objects and arrays of a result, or of what an encoder gets, may lie in each other.
    pub fields_depth_max: u32,
    /// How many keys all objects of a result, or of what an encoder gets, may have together.
    pub fields_keys_max: u32,
    /// Longest payload that an encoder may return, in bytes; no data rate carries more than 242.
    pub payload_bytes_max: u32,
    /// Calls of `console.log` and its like for one message; further ones are dropped.
    pub log_entries_max: u32,
    /// Longest argument of such a call, in bytes of JSON; longer ones are cut.
    pub log_field_bytes_max: u32,
    /// All of them together, in bytes; what comes then is dropped.
    pub log_bytes_max: u32,
    /// Longest text of a failure or a warning, in bytes; longer ones are cut.
    pub message_bytes_max: u32,
    /// Warnings of one message; further ones are dropped.
    pub warnings_max: u32,
    /// Wall-clock time of one message, in milliseconds; an alarm rather than a limit, fuel should end it first.
    pub time_ms_max: u64,
    /// Wall-clock time of parsing and evaluating a function set, in milliseconds.
    pub load_time_ms_max: u64,
}

/// The longest memory that there is room for in an image.
const MEMORY_BYTES_MAX: usize = 64 << 20;
/// As deep as results can be written and read within the stack.
const FIELDS_DEPTH_MAX: u32 = 256;

impl Limits {
    /// Rejects limits that cannot work.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        match self {
            _ if self.memory_bytes_max > MEMORY_BYTES_MAX => {
                Err("`memory_bytes_max` must be at most 67108864 (64 MiB)")
            }
            _ if self.fields_depth_max > FIELDS_DEPTH_MAX => Err("`fields_depth_max` must be at most 256"),
            _ if self.time_ms_max == 0 || self.load_time_ms_max == 0 => {
                Err("`time_ms_max` and `load_time_ms_max` must be at least 1")
            }
            _ => Ok(()),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes_max: 262_144,
            input_bytes_max: 255,
            fuel: 100_000_000,
            load_fuel: 350_000_000,
            memory_bytes_max: 16 << 20,
            heap_bytes_max: 12 << 20,
            kept_bytes_max: 8 << 20,
            fields_bytes_max: 16_384,
            fields_depth_max: 32,
            fields_keys_max: 1_024,
            payload_bytes_max: 242,
            log_entries_max: 64,
            log_field_bytes_max: 1_024,
            log_bytes_max: 16_384,
            message_bytes_max: 1_024,
            warnings_max: 32,
            time_ms_max: 1_000,
            load_time_ms_max: 5_000,
        }
    }
}
