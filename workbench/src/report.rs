//! The report on a codec. It serializes to JSON for programs; `text` renders it for people.

pub(crate) mod cost;
pub(crate) mod coverage;
pub(crate) mod format;
pub(crate) mod profile;
pub(crate) mod reporter;
pub(crate) mod totals;

use std::{path::PathBuf, time::Duration};

use runtime::{Failure, LogEntry, Sources, sanitize};
use serde::Serialize;

use self::{
    cost::{Cost, Costs},
    profile::coverage::Reached,
};
use crate::{
    codec::{
        Codec, Example, Expected, Input,
        compare::{Difference, settled::Settled, to_short_json, truncate},
        kind_name,
    },
    text::{place::Place, surrogates::to_json},
};

/// The result of checking one codec.
#[derive(Debug, Serialize)]
pub struct CodecReport {
    /// The codec's id.
    pub id: String,
    /// The file of its script, as far as there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Cost of loading it; absent when there is a failure.
    pub loaded: Option<Loaded>,
    /// The reason why the codec cannot be loaded, or that Airlock itself failed; then no example was run.
    pub failure: Option<String>,
    /// The line of the script that failed, if it is known.
    #[serde(skip)]
    pub failure_line: Option<u32>,
    /// Cost over its examples; absent when none was run.
    pub cost: Option<Cost>,
    /// The examples, in their order.
    pub examples: Vec<ExampleReport>,
    /// Coverage of the script, if that was asked for. Reports have it by script, because codecs may share one.
    #[serde(skip)]
    pub reached: Option<Reached>,
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
    /// Result of the comparison with what the example states.
    #[serde(flatten)]
    pub outcome: ExampleOutcome,
    /// Fuel used.
    pub fuel: u64,
    /// Time in the sandbox, in microseconds.
    pub microseconds: f64,
    /// True if a limit is expected to end it, so that its cost says nothing about the codec.
    pub tries_limit: bool,
    /// Warnings about a result that was returned.
    pub warnings: Vec<String>,
    /// Lines that the function logged.
    pub logs: Vec<String>,
    /// The line of the script that failed, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Place where the example is written.
    #[serde(skip)]
    pub place: Option<Place>,
    /// The whole result, unless the call failed.
    #[serde(skip)]
    pub(crate) result: Option<String>,
    /// The expectation after an update, if it is not as expected and returned something.
    #[serde(skip)]
    pub(crate) settled: Option<Settled>,
}

/// Outcome of running an example.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum ExampleOutcome {
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
        /// The reason: `now`, `random`, `engine` or `unsound`.
        reason: &'static str,
    },
}

/// Difference between a result and what was expected.
#[derive(Debug, Serialize)]
pub struct Mismatch {
    /// The expected result, truncated to a line or two.
    pub expected: String,
    /// The returned result, likewise; absent when the call failed.
    pub got: Option<String>,
    /// The reason why the call failed, with the source line if it is known.
    pub failure: Option<String>,
    /// Places where two JSON values differ.
    pub differences: Vec<Difference>,
}

impl CodecReport {
    pub(crate) fn new(codec: &Codec, loaded: Loaded, examples: Vec<ExampleReport>) -> Self {
        let mut report = Self { loaded: Some(loaded), examples, ..Self::empty(codec) };
        let mut costs = Costs::default();
        report.add_to(&mut costs);
        report.cost = costs.cost();
        report
    }

    /// Adds the costs of its examples.
    pub(crate) fn add_to(&self, costs: &mut Costs) {
        let is_loaded = self.loaded.is_some();
        let typical = self.examples.iter().filter(|example| is_loaded && example.has_typical_cost());
        typical.for_each(|example| costs.add(example.microseconds, example.fuel));
    }

    fn empty(codec: &Codec) -> Self {
        Self {
            id: codec.id.clone(),
            file: codec.script_file.clone(),
            loaded: None,
            failure: None,
            failure_line: None,
            cost: None,
            examples: Vec::new(),
            reached: None,
        }
    }

    /// The report on a codec that cannot be loaded, so none of its examples returns what it should.
    pub(crate) fn unloadable(codec: &Codec, failure: String, failure_line: Option<u32>) -> Self {
        let examples = codec.examples.iter().enumerate().map(|(index, example)| {
            let mut report = ExampleReport::new(index + 1, example);
            let failure = "the codec cannot be loaded".to_owned();
            report.outcome = match example.excluded {
                Some(excluded) => ExampleOutcome::Excluded { reason: excluded.name() },
                None => ExampleOutcome::Failed(Mismatch::failure(example.expected.describe(), failure)),
            };
            report
        });
        Self { failure: Some(failure), failure_line, examples: examples.collect(), ..Self::empty(codec) }
    }

    /// The report on a codec that made us panic, which must not end the run of the others.
    pub(crate) fn panicked(codec: &Codec) -> Self {
        Self::unloadable(codec, "Airlock panicked; please report this bug".to_owned(), None)
    }

    /// Returns true if it cannot be loaded or an example failed.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some() || self.examples.iter().any(ExampleReport::has_failed)
    }
}

impl ExampleReport {
    /// A report to be completed by running the example.
    pub(crate) fn new(number: usize, example: &Example) -> Self {
        let input = match &example.input {
            Input::Bytes(bytes) => hex::encode(bytes),
            Input::Json(json) => to_json(json),
        };
        Self {
            number,
            description: example.description.clone(),
            call: format!("{}, port {}, {}", kind_name(example.function), example.port, truncate(&input)),
            outcome: ExampleOutcome::Passed,
            fuel: 0,
            microseconds: 0.0,
            tries_limit: matches!(example.expected, Expected::Timeout),
            warnings: Vec::new(),
            logs: Vec::new(),
            line: None,
            place: example.place.clone(),
            result: None,
            settled: None,
        }
    }

    /// Returns true if it did not return what was expected.
    pub fn has_failed(&self) -> bool {
        matches!(self.outcome, ExampleOutcome::Failed(_))
    }

    /// Returns true if it was run, without meaning to exceed a limit.
    pub fn has_typical_cost(&self) -> bool {
        !self.tries_limit && !matches!(self.outcome, ExampleOutcome::Excluded { .. })
    }
}

impl ExampleReport {
    /// Its name in reports: the number, and what the author says of it.
    pub(crate) fn title(&self) -> String {
        let dash = if self.description.is_empty() { "" } else { " — " };
        format!("example {}{dash}{}", self.number, sanitize(&self.description))
    }

    /// The file and line to look at: where the script failed, or else where the example is written.
    pub(crate) fn site(&self, codec: &CodecReport) -> Option<(String, usize)> {
        let in_script = self.line.and_then(|line| Some((codec.file.as_ref()?.display().to_string(), line as usize)));
        in_script.or_else(|| self.place.as_ref().map(|place| (place.file.display().to_string(), place.line)))
    }
}

impl Mismatch {
    /// Describes the differences, in lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.differences.is_empty() {
            lines.push(format!("expected {}", sanitize(&self.expected)));
        }
        match (&self.failure, &self.got) {
            (Some(failure), _) => lines.extend(format!("but {failure}").lines().map(sanitize)),
            (None, Some(got)) if self.differences.is_empty() => lines.push(format!("got {}", sanitize(got))),
            _ => {}
        }
        lines.extend(self.differences.iter().map(Difference::line));
        lines
    }

    pub(crate) fn got(expected: String, got: String) -> Self {
        Self { expected, got: Some(got), failure: None, differences: Vec::new() }
    }

    pub(crate) fn failure(expected: String, failure: String) -> Self {
        Self { expected, got: None, failure: Some(failure), differences: Vec::new() }
    }
}

/// A failure for people: a sentence, then the source line if it is known.
pub fn describe(failure: &Failure, sources: &Sources) -> String {
    // A thrown text may have several lines, which could be mistaken for ours.
    let sentence = sanitize(&failure.to_string());
    match failure.excerpt(sources) {
        Some(excerpt) => format!("{sentence}\n{excerpt}"),
        None => sentence,
    }
}

/// A number with its noun, as in `1 example` and `2 examples`.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A duration in microseconds, exact to the nanosecond.
pub fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

/// A log entry in one line; it may contain control characters.
pub fn log_line(entry: &LogEntry) -> String {
    format!("{} logged: {}", entry.slot.name(), entry.fields.join(" "))
}

impl Expected {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Value(value) => to_short_json(value),
            Self::Listed(names) => format!("only fields that are listed ({})", names.len()),
            Self::Undefined => "undefined".to_owned(),
            Self::Throws => "an exception".to_owned(),
            Self::Timeout => "a limit that ends it".to_owned(),
            Self::Valid => "a valid result".to_owned(),
            Self::Unknown => "any result".to_owned(),
        }
    }
}
