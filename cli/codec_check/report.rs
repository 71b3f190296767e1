//! The report on a codec. It serializes to JSON for programs; `text` renders it for people.

use runtime::Function;
use serde::Serialize;

use super::{
    codec::{Codec, Example, Expected, Input},
    compare::{Difference, truncate},
    cost::{Cost, Costs},
    surrogates::to_json,
};

/// The result of checking one codec.
#[derive(Debug, Serialize)]
pub struct CodecReport {
    /// The codec's id.
    pub id: String,
    /// What loading cost; absent when there is a failure.
    pub loaded: Option<Loaded>,
    /// Why the codec cannot be loaded, or that the checker itself failed; then no example was run.
    pub failure: Option<String>,
    /// Cost over its examples; absent when none was run.
    pub cost: Option<Cost>,
    /// The examples, in their order.
    pub examples: Vec<ExampleReport>,
}

/// The cost of loading a codec.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Loaded {
    /// Time to parse and evaluate it, in microseconds.
    pub microseconds: f64,
    /// Fuel for the same.
    pub fuel: u64,
    /// Memory that it takes between messages, in bytes.
    pub idle_bytes: usize,
}

/// The result of running one example.
#[derive(Debug, Serialize)]
pub struct ExampleReport {
    /// Its number in the codec, from 1.
    pub number: usize,
    /// The author's description; may be empty.
    pub description: String,
    /// The call: function, port and input.
    pub call: String,
    /// Whether it passed.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Fuel used.
    pub fuel: u64,
    /// Time in the sandbox, in microseconds.
    pub microseconds: f64,
    /// Whether a limit is expected to end it, so that its cost says nothing about the codec.
    pub tries_limit: bool,
    /// Warnings about a result that was returned.
    pub warnings: Vec<String>,
    /// What the function logged.
    pub logs: Vec<String>,
}

/// Whether an example passed.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// It returned what was expected.
    Passed,
    /// Nothing was expected.
    Shown {
        /// The returned JSON, or `undefined`.
        result: String,
    },
    /// It returned something else, or failed.
    Failed(Mismatch),
    /// It was not run.
    Excluded {
        /// Why: `now`, `random`, `engine` or `unsound`.
        reason: &'static str,
    },
}

/// How a result differs from what was expected.
#[derive(Debug, Serialize)]
pub struct Mismatch {
    /// What was expected, truncated to a line or two.
    pub expected: String,
    /// What was returned, likewise; absent when the call failed.
    pub got: Option<String>,
    /// Why the call failed, with the source line if it is known.
    pub failure: Option<String>,
    /// Where two JSON values differ.
    pub differences: Vec<Difference>,
}

impl CodecReport {
    pub(super) fn new(codec: &Codec, loaded: Loaded, examples: Vec<ExampleReport>) -> Self {
        let mut report = Self { id: codec.id.clone(), loaded: Some(loaded), failure: None, cost: None, examples };
        let mut costs = Costs::default();
        report.add_to(&mut costs);
        report.cost = costs.cost();
        report
    }

    /// Adds the costs of its examples.
    pub(super) fn add_to(&self, costs: &mut Costs) {
        let typical = self.examples.iter().filter(|example| example.has_typical_cost());
        typical.for_each(|example| costs.add(example.microseconds, example.fuel));
    }

    pub(super) fn unloadable(codec: &Codec, failure: String) -> Self {
        Self { id: codec.id.clone(), loaded: None, failure: Some(failure), cost: None, examples: Vec::new() }
    }

    /// The report on a codec that made the checker panic, which must not end the check of the others.
    pub(super) fn panicked(codec: &Codec) -> Self {
        Self::unloadable(codec, "the checker panicked; please report this bug".to_owned())
    }

    /// Whether it cannot be loaded or an example failed.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some() || self.examples.iter().any(ExampleReport::has_failed)
    }
}

impl ExampleReport {
    /// A report to be completed by running the example.
    pub(super) fn new(number: usize, example: &Example) -> Self {
        let input = match &example.input {
            Input::Bytes(bytes) => hex::encode(bytes),
            Input::Json(json) => to_json(json),
        };
        Self {
            number,
            description: example.description.clone(),
            call: format!("{}, port {}, {}", name(example.function), example.port, truncate(&input)),
            outcome: Outcome::Passed,
            fuel: 0,
            microseconds: 0.0,
            tries_limit: matches!(example.expected, Expected::Timeout),
            warnings: Vec::new(),
            logs: Vec::new(),
        }
    }

    /// Whether it did not return what was expected.
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    /// Whether it was run, without meaning to exceed a limit.
    pub fn has_typical_cost(&self) -> bool {
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

/// The name of a function in reports, as `kind` of examples has it.
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
