//! Codecs, their examples, and what each example expects.

pub(crate) mod call;
pub(crate) mod compare;
pub(crate) mod memory_size;

use std::{collections::BTreeSet, path::PathBuf};

use runtime::{Dialect, Function, Sources};
use serde_json::{Map, Value};

use crate::text::place::Place;

/// The current time that functions see unless an example sets it: the start of 2026, in milliseconds since 1970.
pub(crate) const DEFAULT_TIME_MS: i64 = 1_767_225_600_000;

/// Maximum number of examples of a codec. A codec's report is held in memory until it is complete.
pub(crate) const EXAMPLES_MAX: usize = 1024;

/// A script with examples of what its functions return.
#[derive(Debug)]
pub struct Codec {
    /// Its name in reports.
    pub id: String,
    /// The source, which may define any of the functions.
    pub script: String,
    /// The file that the source is from, as far as there is one.
    pub script_file: Option<PathBuf>,
    /// The dialect; detected from the script when absent.
    pub dialect: Option<Dialect>,
    /// At most 1024.
    pub examples: Vec<Example>,
    /// Names of members, its own and its examples', that were ignored.
    pub unknown_members: BTreeSet<String>,
}

/// One call and its expected result.
#[derive(Clone, Debug)]
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
    /// True if input and result are objects of TS013 even if the function has another dialect. It then takes and
    /// returns their `data` or `bytes` only.
    pub wrapped: bool,
    /// Differences that comparisons ignore.
    pub tolerance: Tolerance,
    /// The reason why the example is not run, if so.
    pub excluded: Option<Excluded>,
    /// Place where it is written.
    pub place: Option<Place>,
}

impl Codec {
    /// A codec without examples.
    pub fn new(id: String, script: String, script_file: Option<PathBuf>) -> Self {
        Self { id, script, script_file, dialect: None, examples: Vec::new(), unknown_members: BTreeSet::new() }
    }

    /// Returns the sources for the sandbox.
    pub(crate) fn sources(&self) -> Sources {
        Sources { dialect: self.dialect, ..Sources::single_file(&self.script) }
    }
}

impl Example {
    /// An example that expects nothing.
    pub(crate) fn new(function: Function, input: Input) -> Self {
        Self {
            description: String::new(),
            function,
            port: 0,
            input,
            extra: Map::new(),
            time_ms: DEFAULT_TIME_MS,
            expected: Expected::Unknown,
            wrapped: false,
            tolerance: Tolerance::None,
            excluded: None,
            place: None,
        }
    }

    /// The fields that it encodes: those in its object of TS013, or what it has in place of that. None for a payload.
    pub fn fields(&self, is_ts013: bool) -> Option<&Value> {
        match &self.input {
            Input::Json(input) => Some(input.get("data").filter(|_| is_ts013 || self.wrapped).unwrap_or(input)),
            Input::Bytes(_) => None,
        }
    }
}

/// The argument of a function.
#[derive(Clone, Debug)]
pub enum Input {
    /// A payload.
    Bytes(Vec<u8>),
    /// A JSON value; for TS013 the whole input object.
    Json(Value),
}

/// The expected result of a call.
#[derive(Clone, Debug)]
pub enum Expected {
    /// This value.
    Value(Value),
    /// An object whose fields are all among these.
    Listed(BTreeSet<String>),
    /// `undefined`.
    Undefined,
    /// An exception.
    Throws,
    /// The call runs until a limit ends it.
    Timeout,
    /// Any result in which `functions fuzz` finds no fault.
    Valid,
    /// Nothing is expected; the report shows the result.
    Unknown,
}

/// Differences that comparisons ignore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// Nothing.
    None,
    /// Null members, and empty `warnings` and `errors`.
    Empty,
    /// Differences that the device repository of The Things Network leaves open: a member that is null may be missing,
    /// because The Things Stack writes `undefined` as null.
    Repository,
    /// Differences that packages of TS013 leave open: the same, empty `warnings` and `errors`, times that are written
    /// as X for each digit, and numbers that are written as `SKIP_NUMBER`.
    Package,
}

/// Reasons why an example is not run.
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

/// The functions that an example can call, with their names in examples and reports.
pub(crate) const KINDS: [(Function, &str); 6] = [
    (Function::Decoder, "uplink"),
    (Function::Converter, "convert"),
    (Function::Validator, "validate"),
    (Function::Encoder, "downlink-encode"),
    (Function::DecodeDownlink, "downlink-decode"),
    (Function::NormalizeUplink, "uplink-normalize"),
];

/// The name of a function in examples and reports.
pub(crate) fn kind_name(function: Function) -> &'static str {
    KINDS.iter().find(|(other, _)| *other == function).map_or("", |(_, name)| name)
}

/// The function that `name` stands for.
pub(crate) fn kind(name: &str) -> Option<Function> {
    KINDS.iter().find(|(_, other)| *other == name).map(|(function, _)| *function)
}

/// Returns true if a function takes a payload, and not an object.
pub(crate) fn takes_bytes(function: Function) -> bool {
    matches!(function, Function::Decoder | Function::DecodeDownlink)
}
