//! A codec, its examples, and what must come of them.

use std::collections::BTreeSet;

use runtime::{Dialect, Function};
use serde_json::{Map, Value};

/// A script and what it must answer.
#[derive(Debug)]
pub struct Codec {
    /// What reports call it.
    pub id: String,
    /// The text that may define any of the functions.
    pub script: String,
    /// Whose calling convention it follows; found from the text when absent.
    pub dialect: Option<Dialect>,
    /// What it must answer.
    pub examples: Vec<Example>,
    /// Names of members, its own and its examples', that mean nothing here and were not looked at.
    pub others: BTreeSet<String>,
}

/// One call and what must come of it.
#[derive(Debug)]
pub struct Example {
    /// What it is for people; may be empty.
    pub description: String,
    /// The function to call.
    pub function: Function,
    /// The port that the function sees; 0 when absent.
    pub port: u8,
    /// What the function gets.
    pub input: Input,
    /// Further members of the input of TS013; `variables` is what ChirpStack 3 gets.
    pub extra: Map<String, Value>,
    /// What the function sees as the current time, in milliseconds since 1970.
    pub time_ms: i64,
    /// What must come out.
    pub expected: Expected,
    /// Whether null members and empty `warnings` and `errors` do not count.
    pub ignores_empty: bool,
    /// Why it cannot be checked here, if it cannot.
    pub excluded: Option<Excluded>,
}

/// What a function gets.
#[derive(Debug)]
pub enum Input {
    /// The bytes of a payload.
    Bytes(Vec<u8>),
    /// A JSON value; the whole input for TS013.
    Json(Value),
}

/// What must come out of a call.
#[derive(Debug)]
pub enum Expected {
    /// This value, as JSON.
    Value(Value),
    /// Nothing.
    Undefined,
    /// An exception.
    Throws,
    /// It never ends, so a limit must end it.
    Timeout,
    /// Nobody knows: what comes out is shown.
    Unknown,
}

/// Why an example is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excluded {
    /// Its result depends on the time of the call.
    Now,
    /// Its result depends on randomness.
    Random,
    /// The JavaScript engine is known to answer differently.
    Engine,
    /// Its author expects what the script does not answer in any engine.
    Unsound,
}

impl Excluded {
    /// The word for it in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Random => "random",
            Self::Engine => "engine",
            Self::Unsound => "unsound",
        }
    }
}
