//! One message: what goes into a sandbox and what comes out.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::wire::{Entry, Level, Slot};

/// One message on its way through the functions.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which way it goes.
    pub entry: Entry,
    /// The port that the functions see.
    pub port: u8,
    /// What the functions see as the current time, in milliseconds since 1970.
    pub time_ms: i64,
    /// What `Math.random` starts from.
    pub seed: u64,
    /// Payload bytes; the text of a JSON object for [`Entry::EncodeDownlink`].
    pub payload: Vec<u8>,
}

/// What became of one message.
#[derive(Debug)]
pub struct Report {
    /// What the functions returned, or which one failed and why.
    pub result: Result<Value, Failure>,
    /// What the author should know although there is a result.
    pub warnings: Vec<String>,
    /// What the functions logged, up to a failure.
    pub logs: Vec<LogEntry>,
    /// Fuel used: the same for the same functions and message, on every machine.
    pub fuel: u64,
    /// Time spent in the sandbox, its preparation and reset included.
    pub elapsed: Duration,
}

impl Report {
    pub(crate) fn of(result: Result<Value, Failure>) -> Self {
        Self { result, warnings: Vec::new(), logs: Vec::new(), fuel: 0, elapsed: Duration::ZERO }
    }
}

/// What the functions made of a message.
#[derive(Debug)]
pub enum Value {
    /// Of payload bytes.
    Fields {
        /// A well-formed JSON object of at most 16 KiB and 32 levels; null when there is no function to make one.
        json: Box<RawValue>,
        /// Whether the validator found it worth publishing; true without a validator.
        valid: bool,
    },
    /// Of a JSON object.
    Bytes {
        /// The payload, at most 242 bytes.
        bytes: Vec<u8>,
        /// The port that the encoder asks for, if it does.
        port: Option<u8>,
    },
}

/// One call of `console.log` or its siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The function that called it.
    pub slot: Slot,
    /// Which sibling it called.
    pub level: Level,
    /// The arguments, each as JSON text.
    pub fields: Vec<String>,
}
