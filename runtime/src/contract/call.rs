//! The input and outcome of one call.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::contract::failure::Failure;
use crate::contract::wire::{EntryPoint, Function, LogLevel, Slot};

/// One message to run through the functions.
#[derive(Clone, Debug)]
pub struct Call {
    /// The functions to run.
    pub entry_point: EntryPoint,
    /// The port that the functions see.
    pub port: u8,
    /// The current time that the functions see, in milliseconds since 1970.
    pub time_ms: i64,
    /// The seed of `Math.random`.
    pub seed: u64,
    /// Payload bytes; a JSON object for [`EntryPoint::EncodeDownlink`].
    ///
    /// For a single function, bytes for [`Function::Decoder`] and [`Function::DecodeDownlink`], and any JSON value for
    /// the others: `data` for TS013, and the first argument or object for the other dialects.
    pub payload: Vec<u8>,
    /// A JSON object whose members are added to the input of TS013 functions; ChirpStack 3 functions get its
    /// `variables`. Empty for none.
    pub extra: String,
    /// For [`EntryPoint::SingleFunction`] only: the function to run alone, with the arguments that it would get from a
    /// message.
    pub single_function: Option<Function>,
}

impl Call {
    /// The one function that runs, if it is not that of a slot in an uplink.
    pub(crate) fn function(&self) -> Option<Function> {
        match self.entry_point {
            EntryPoint::DecodeDownlink => Some(Function::DecodeDownlink),
            EntryPoint::SingleFunction => self.single_function,
            EntryPoint::Uplink | EntryPoint::EncodeDownlink => None,
        }
    }
}

/// The outcome of one call.
#[derive(Debug)]
pub struct CallOutcome {
    /// The result of the functions, or which one failed and why.
    pub result: Result<Value, Failure>,
    /// Warnings for the author of the functions.
    pub warnings: Vec<String>,
    /// Console output, up to a failure.
    pub logs: Vec<LogEntry>,
    /// Fuel used; deterministic for the same functions and message.
    pub fuel: u64,
    /// Time spent in the sandbox, including its preparation and reset.
    pub elapsed: Duration,
}

impl CallOutcome {
    pub(crate) fn new(result: Result<Value, Failure>) -> Self {
        Self { result, warnings: Vec::new(), logs: Vec::new(), fuel: 0, elapsed: Duration::ZERO }
    }
}

/// The result of a call.
#[derive(Debug)]
pub enum Value {
    /// Result for payload bytes.
    Fields {
        /// A well-formed JSON object within the limits; null if there is no decoder or converter, or a TS013 decoder
        /// returned no data.
        json: Box<RawValue>,
        /// The result of `normalizeUplink`: an object or an array of objects. `None` without such a function, or if it
        /// failed, which is a warning.
        normalized: Option<Box<RawValue>>,
        /// The result of the validator; true without a validator.
        valid: bool,
    },
    /// Result of an encoder.
    Bytes {
        /// The payload, within the limits.
        bytes: Vec<u8>,
        /// The port that the encoder chose, if any.
        port: Option<u8>,
    },
    /// Result of a single function.
    Returned {
        /// Any well-formed JSON within the limits; `None` for values that JSON omits, such as `undefined`.
        json: Option<Box<RawValue>>,
    },
}

/// One call of a `console` method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The function that called it.
    pub slot: Slot,
    /// The severity of the method.
    pub level: LogLevel,
    /// The arguments, each as JSON text.
    pub fields: Vec<String>,
}
