//! One message: what goes into a sandbox and what comes out.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::contract::failure::Failure;
use crate::contract::wire::{EntryPoint, Function, LogLevel, Slot};

/// One message on its way through the functions.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which way it goes.
    pub entry_point: EntryPoint,
    /// The port that the functions see.
    pub port: u8,
    /// What the functions see as the current time, in milliseconds since 1970.
    pub time_ms: i64,
    /// What `Math.random` starts from.
    pub seed: u64,
    /// Payload bytes; the text of a JSON object for [`EntryPoint::EncodeDownlink`].
    pub payload: Vec<u8>,
    /// What [`EntryPoint::SingleFunction`] runs; nothing for all others.
    pub single_function: Option<SingleFunction>,
}

/// One function to run by itself, with the arguments that it would get from a message.
///
/// The payload is then bytes for [`Function::Decoder`] and [`Function::DecodeDownlink`], and the text of any JSON value
/// for the others: what `data` is for TS013, and the first argument or object for the other dialects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleFunction {
    /// Which one.
    pub function: Function,
    /// The text of a JSON object whose members join the input of TS013 functions, or are the `variables` of ChirpStack 3;
    /// empty for none.
    pub extra: String,
}

/// What became of one message.
#[derive(Debug)]
pub struct CallOutcome {
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

impl CallOutcome {
    pub(crate) fn of(result: Result<Value, Failure>) -> Self {
        Self { result, warnings: Vec::new(), logs: Vec::new(), fuel: 0, elapsed: Duration::ZERO }
    }
}

/// What the functions made of a message.
#[derive(Debug)]
pub enum Value {
    /// Of payload bytes.
    Fields {
        /// A well-formed JSON object within the limits; null when there is no function to make one, or a TS013
        /// decoder had nothing to say.
        json: Box<RawValue>,
        /// What `normalizeUplink` made of the decoder's object: an object, or an array of them. None without such a
        /// function, or when it failed, which is a warning.
        normalized: Option<Box<RawValue>>,
        /// Whether the validator found it worth publishing; true without a validator.
        valid: bool,
    },
    /// Of a JSON object.
    Bytes {
        /// The payload, within the limits.
        bytes: Vec<u8>,
        /// The port that the encoder asks for, if it does.
        port: Option<u8>,
    },
    /// Of a single function.
    Returned {
        /// Any well-formed JSON within the limits; `None` for `undefined` and what else JSON leaves out.
        json: Option<Box<RawValue>>,
    },
}

/// One call of `console.log` or its siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The function that called it.
    pub slot: Slot,
    /// Which sibling it called.
    pub level: LogLevel,
    /// The arguments, each as JSON text.
    pub fields: Vec<String>,
}
