//! Findings of fuzzing. They serialize to JSON for programs; `report.rs` renders them for people.

use std::path::PathBuf;

use runtime::{Call, Function};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{FuzzPlan, Unread};
use crate::{
    codec::{Codec, kind_name},
    run::fault::{Fault, FaultKind},
};

/// End of a summary that names one of several numbers.
const AND_OTHERS: &str = ", and others";

/// Findings about one codec.
#[derive(Debug, Serialize)]
pub struct FuzzReport {
    /// The codec's id.
    pub id: String,
    /// The file of its script, as far as there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The reason why it cannot be loaded; then nothing was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The seed, which with the same codec gives the same report.
    pub seed: u64,
    /// True if it has a function that takes a payload.
    pub has_targets: bool,
    /// Calls, with those for making payloads smaller.
    pub calls: u64,
    /// Fuel of all calls.
    pub fuel: u64,
    /// Number of random messages after which it ended, if it needed too much fuel or time for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_after: Option<u32>,
    /// Faults, by kind and line.
    pub findings: Vec<FuzzFinding>,
    /// Bytes that make no difference, which may be right.
    pub unread: Vec<Unread>,
}

/// A fault, with a message that shows it.
#[derive(Debug, Serialize)]
pub struct FuzzFinding {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The function, by its name in examples.
    #[serde(serialize_with = "function_name")]
    pub function: Function,
    /// The port.
    pub port: u8,
    /// The smallest payload that was found, in hexadecimal. If the function is an encoder, `decodeDownlink` makes its
    /// input of it.
    pub bytes: String,
    /// The input of an encoder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Box<RawValue>>,
    /// The line of the script, if it is known.
    pub line: Option<u32>,
    /// In a few words.
    pub summary: String,
    /// A description for people; may have several lines.
    pub message: String,
    /// The number of an example that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<usize>,
    /// The message that shows it.
    #[serde(skip)]
    pub(crate) call: Call,
}

fn function_name<S: serde::Serializer>(function: &Function, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind_name(*function))
}

impl FuzzReport {
    pub(super) fn new(codec: &Codec, plan: &FuzzPlan) -> Self {
        Self {
            id: codec.id.clone(),
            file: codec.script_file.clone(),
            failure: None,
            seed: plan.seed,
            has_targets: false,
            calls: 0,
            fuel: 0,
            ended_after: None,
            findings: Vec::new(),
            unread: Vec::new(),
        }
    }

    /// Returns true if it cannot be loaded, or has findings.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some() || !self.findings.is_empty()
    }
}

impl FuzzFinding {
    pub(super) fn new(fault: Fault, call: Call, example: Option<usize>) -> Self {
        let Fault { function, kind, summary, message, line, input, site: _ } = fault;
        let input = input.and_then(|input| RawValue::from_string(input).ok());
        let (port, bytes) = (call.port, hex::encode(&call.payload));
        Self { kind, function, port, bytes, input, line, summary, message, example, call }
    }

    /// Returns true if both are about a number in the result of the same message: one missing byte makes many of them.
    pub(super) fn has_nan_of(&self, other: &Self) -> bool {
        let is_same = (self.function, self.port, &self.bytes) == (other.function, other.port, &other.bytes);
        is_same && self.kind == FaultKind::Nan && other.kind == FaultKind::Nan
    }

    /// Adds what another one says of the same message.
    pub(super) fn join(&mut self, other: &Self) {
        self.message = format!("{}\n{}", self.message, other.message);
        self.example = self.example.or(other.example);
        if !self.summary.ends_with(AND_OTHERS) {
            self.summary += AND_OTHERS;
        }
    }
}
