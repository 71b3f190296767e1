//! Codecs, their examples, and what each example expects.

use std::collections::BTreeSet;

use runtime::{Dialect, Function};
use serde_json::{Map, Value};

/// A script with examples of what its functions return.
#[derive(Debug)]
pub struct Codec {
    /// Its name in reports.
    pub id: String,
    /// The source, which may define any of the functions.
    pub script: String,
    /// The dialect; detected from the script when absent.
    pub dialect: Option<Dialect>,
    /// At most 1024.
    pub examples: Vec<Example>,
    /// Names of members, its own and its examples', that were ignored.
    pub unknown_members: BTreeSet<String>,
}

/// One call and its expected result.
#[derive(Debug)]
pub struct Example {
    /// The author's description; may be empty.
    pub description: String,
    /// The function to call.
    pub function: Function,
    /// The LoRaWAN port; 0 when the example names none.
    pub port: u8,
    /// The argument of the function.
    pub input: Input,
    /// Further members of the TS013 input object; ChirpStack 3 gets `variables` only.
    pub extra: Map<String, Value>,
    /// The current time that the function sees, in milliseconds since 1970.
    pub time_ms: i64,
    /// The expected result.
    pub expected: Expected,
    /// Whether null members and empty `warnings` and `errors` are ignored in comparisons.
    pub ignores_empty: bool,
    /// Why the example is not run, if so.
    pub excluded: Option<Excluded>,
}

/// The argument of a function.
#[derive(Debug)]
pub enum Input {
    /// A payload.
    Bytes(Vec<u8>),
    /// A JSON value; for TS013 the whole input object.
    Json(Value),
}

/// The expected result of a call.
#[derive(Debug)]
pub enum Expected {
    /// This value.
    Value(Value),
    /// `undefined`.
    Undefined,
    /// An exception.
    Throws,
    /// The call runs until a limit ends it.
    Timeout,
    /// Nothing is expected; the report shows the result.
    Unknown,
}

/// Why an example is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excluded {
    /// Its result depends on the time of the call.
    Now,
    /// Its result depends on randomness.
    Random,
    /// QuickJS is known to give another result.
    Engine,
    /// The expectation is wrong in every JavaScript engine.
    Unsound,
}

impl Excluded {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Random => "random",
            Self::Engine => "engine",
            Self::Unsound => "unsound",
        }
    }
}
