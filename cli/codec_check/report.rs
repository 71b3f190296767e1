//! What came of checking a codec, as programs read it; `text` is for people.

use runtime::Function;
use serde::Serialize;

use super::{
    codec::{Codec, Example, Expected, Input},
    compare::{Difference, cut},
    cost::{Cost, Costs},
};

/// What came of one codec.
#[derive(Debug, Serialize)]
pub struct CodecReport {
    /// What it is called.
    pub id: String,
    /// What loading took; absent when there is a failure.
    pub loaded: Option<Loaded>,
    /// Why it cannot be loaded, or that the host made a mistake; then nothing is known of the examples.
    pub failure: Option<String>,
    /// What its examples cost; absent when none was run.
    pub cost: Option<Cost>,
    /// What came of each example, in their order.
    pub examples: Vec<ExampleReport>,
}

/// What loading a codec took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Loaded {
    /// Time to parse and evaluate it.
    pub microseconds: f64,
    /// Fuel for the same.
    pub fuel: u64,
    /// Memory that it takes while no message meets it, in bytes.
    pub idle_bytes: usize,
}

/// What came of one example.
#[derive(Debug, Serialize)]
pub struct ExampleReport {
    /// Its place among the examples of its codec, from 1.
    pub number: usize,
    /// What it is, in its author's words.
    pub description: String,
    /// What was called: function, port and input.
    pub call: String,
    /// Whether it passed.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Fuel used.
    pub fuel: u64,
    /// Time in the sandbox.
    pub microseconds: f64,
    /// Whether a limit must end it, so that its cost says nothing about the codec.
    pub tries_limit: bool,
    /// What the author should know although there is a result.
    pub warnings: Vec<String>,
    /// What the function logged.
    pub logs: Vec<String>,
}

/// Whether an example passed.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// What was expected came out.
    Passed,
    /// Nothing was expected; this came out.
    Shown {
        /// JSON, or `undefined`.
        result: String,
    },
    /// Something else came out.
    Failed(Mismatch),
    /// It was not run.
    Excluded {
        /// Why not.
        reason: &'static str,
    },
}

/// How what came out is not what was expected.
#[derive(Debug, Serialize)]
pub struct Mismatch {
    /// What was expected, cut to a line or two.
    pub expected: String,
    /// What came out, likewise; absent for a failure.
    pub got: Option<String>,
    /// Why nothing came out, with the place where it is known.
    pub failure: Option<String>,
    /// Where two values differ.
    pub differences: Vec<Difference>,
}

impl CodecReport {
    pub(super) fn new(codec: &Codec, loaded: Loaded, examples: Vec<ExampleReport>) -> Self {
        let mut costs = Costs::default();
        costs.add(&examples);
        Self { id: codec.id.clone(), loaded: Some(loaded), failure: None, cost: costs.cost(), examples }
    }

    pub(super) fn unloadable(codec: &Codec, failure: String) -> Self {
        Self { id: codec.id.clone(), loaded: None, failure: Some(failure), cost: None, examples: Vec::new() }
    }

    /// The report of a codec that met a mistake of ours, which must not end the check of the others.
    pub(super) fn of_mistake(codec: &Codec) -> Self {
        Self::unloadable(codec, "the host made a mistake, please report this".to_owned())
    }

    /// Whether anything did not come out as expected.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some() || self.examples.iter().any(ExampleReport::has_failed)
    }
}

impl ExampleReport {
    /// A report that is still to be filled.
    pub(super) fn of(number: usize, example: &Example) -> Self {
        let input = match &example.input {
            Input::Bytes(bytes) => hex::encode(bytes),
            Input::Json(json) => json.to_string(),
        };
        Self {
            number,
            description: example.description.clone(),
            call: format!("{}, port {}, {}", name(example.function), example.port, cut(&input)),
            outcome: Outcome::Passed,
            fuel: 0,
            microseconds: 0.0,
            tries_limit: matches!(example.expected, Expected::Timeout),
            warnings: Vec::new(),
            logs: Vec::new(),
        }
    }

    /// Whether something else came out than was expected.
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    /// Whether it was run and what it cost is typical.
    pub fn is_measured(&self) -> bool {
        !self.tries_limit && !matches!(self.outcome, Outcome::Excluded { .. })
    }
}

impl Mismatch {
    pub(super) fn got(expected: String, got: String) -> Self {
        Self { expected, got: Some(got), failure: None, differences: Vec::new() }
    }

    pub(super) fn failure(expected: String, failure: String) -> Self {
        Self { expected, got: None, failure: Some(failure), differences: Vec::new() }
    }
}

/// The word for a function in reports.
const fn name(function: Function) -> &'static str {
    match function {
        Function::Decoder => "uplink",
        Function::Converter => "convert",
        Function::Validator => "validate",
        Function::Encoder => "downlink-encode",
        Function::DecodeDownlink => "downlink-decode",
        Function::NormalizeUplink => "uplink-normalize",
    }
}
