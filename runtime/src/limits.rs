//! The limits of a function set and of a message.

pub(crate) mod limit_overrides;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of a function set and of a message.
///
/// The defaults are measured: every one of 1,945 published vendor scripts with 4,510 messages stays within two thirds of
/// each.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum length of a source, in bytes. Published vendor codecs reach 331 kB, far more than the 40,960 bytes that
    /// other servers allow.
    pub source_bytes_max: usize,
    /// Maximum length of a payload, in bytes.
    pub input_bytes_max: usize,
    /// Fuel for all functions of one message. This is the limit that normally stops a function, and the same on every
    /// machine. A median codec uses 25 thousand, most published ones less than 7 million, the worst 113 million.
    pub fuel: u64,
    /// Fuel for parsing and evaluating a function set. The worst published one uses 280 million.
    pub load_fuel: u64,
    /// Linear memory of a sandbox, in bytes, rounded down to 64 KiB.
    pub memory_bytes_max: usize,
    /// JavaScript heap within that memory, in bytes; beyond it, a function gets an out-of-memory error. The worst
    /// published codec needs 650 KiB, of which the engine uses 330.
    pub heap_bytes_max: u32,
    /// Memory that may change when a function set is evaluated, in bytes of whole 4 KiB pages. The worst published
    /// codec changes 708 KiB.
    pub kept_bytes_max: usize,
    /// Maximum length of a result, and of an encoder's input, in bytes of JSON.
    pub fields_bytes_max: u32,
    /// Maximum nesting depth of a result, and of an encoder's input.
    pub fields_depth_max: u32,
    /// Maximum number of keys in all objects of a result, or of an encoder's input.
    pub fields_keys_max: u32,
    /// Maximum length of an encoded payload, in bytes. No data rate carries more than 242.
    pub payload_bytes_max: u32,
    /// Maximum number of `console` calls per message; further ones are dropped.
    pub log_entries_max: u32,
    /// Maximum length of an argument of such a call, in bytes of JSON; longer ones are truncated.
    pub log_field_bytes_max: u32,
    /// Maximum length of all arguments together, in bytes; further ones are dropped.
    pub log_bytes_max: u32,
    /// Maximum length of the text of a failure or warning, in bytes; longer ones are truncated.
    pub message_bytes_max: u32,
    /// Maximum number of warnings per message; further ones are dropped.
    pub warnings_max: u32,
    /// Wall-clock time of a message, in milliseconds. A backstop: fuel should run out first.
    pub time_ms_max: u64,
    /// Wall-clock time of parsing and evaluating a function set, in milliseconds.
    pub load_time_ms_max: u64,
}

/// The values of limits by the names of the members of [`Limits`].
pub type LimitsByName = BTreeMap<String, u64>;

/// Maximum size of the memory in an image.
const MEMORY_BYTES_MAX: usize = 64 << 20;
/// Maximum depth of a result that can be written and read within the stack.
const FIELDS_DEPTH_MAX: u32 = 256;

impl Limits {
    /// All limits by their names.
    pub fn by_name(&self) -> LimitsByName {
        // Each is a number that is not negative.
        serde_json::to_value(self).and_then(serde_json::from_value).unwrap_or_default()
    }

    /// Refuses limits that cannot work.
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
            source_bytes_max: 524_288,
            input_bytes_max: 255,
            fuel: 200_000_000,
            load_fuel: 500_000_000,
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
