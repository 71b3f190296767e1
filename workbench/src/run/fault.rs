//! Faults in the outcome of a call, whatever an example expects of it.

pub(crate) mod caller;
pub(crate) mod examiner;
mod round_trip;
mod shape;

use runtime::{CallOutcome, Dialect, Failure, FailureKind, Function, Sources, Value};
use serde::Serialize;

pub(crate) use self::shape::Returned;
use crate::{codec::compare::truncate, report::describe};

/// End of the sandbox's warnings about numbers that JSON does not have.
const NO_NUMBER: &str = ", which JSON writes as null";
/// The errors that the engine throws by itself.
const ENGINE_ERRORS: [&str; 7] =
    ["TypeError", "ReferenceError", "RangeError", "SyntaxError", "URIError", "EvalError", "InternalError"];

/// Kinds of faults in an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// It threw an exception.
    Throws,
    /// It ran until its fuel was used up.
    Endless,
    /// It needed more memory than it may.
    Memory,
    /// It called itself too deeply.
    Stack,
    /// It returned something else than its dialect wants, or too much.
    Result,
    /// A number of the result is NaN or infinite, so that JSON has null for it.
    Nan,
    /// The same message has another result with another seed of `Math.random`.
    Random,
    /// Encoding and decoding again changes what was decoded.
    RoundTrip,
    /// The sandbox itself failed.
    Broken,
}

impl FaultKind {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throws => "throws",
            Self::Endless => "endless",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Result => "result",
            Self::Nan => "nan",
            Self::Random => "random",
            Self::RoundTrip => "round-trip",
            Self::Broken => "broken",
        }
    }
}

/// A fault in an outcome.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) function: Function,
    pub(crate) kind: FaultKind,
    /// Distinguishes it from others of its kind in the same function: the line and class of an exception, or the path
    /// of a value. Empty for limits, because where one ends a function depends on the payload.
    pub(crate) site: String,
    /// In a few words, for the description of an example.
    pub(crate) summary: String,
    /// For people; may have several lines.
    pub(crate) message: String,
    pub(crate) line: Option<u32>,
    /// The argument of a function that takes no payload, as JSON.
    pub(crate) input: Option<String>,
}

impl Fault {
    pub(crate) fn new(function: Function, kind: FaultKind, site: &str, message: String) -> Self {
        let summary = message.clone();
        Self { function, kind, site: site.to_owned(), summary, message, line: None, input: None }
    }

    /// Returns true if it is the same fault of the codec, perhaps of another message.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.function, self.kind, &self.site) == (other.function, other.kind, &other.site)
    }
}

/// Returns the faults in an outcome of `function`; none if it returned what its dialect wants, also if these are
/// `errors` of TS013, or an exception that the author throws in a dialect that knows no `errors`.
pub(crate) fn faults(dialect: Dialect, function: Function, outcome: &CallOutcome, sources: &Sources) -> Vec<Fault> {
    match &outcome.result {
        Err(failure) => failed(dialect, function, failure, sources).into_iter().collect(),
        Ok(Value::Returned { json }) => {
            let wrong = shape::wrong(dialect, function, json.as_ref().map(|json| json.get()));
            let wrong = wrong.map(|message| Fault::new(function, FaultKind::Result, &message, message.clone()));
            wrong.into_iter().chain(outcome.warnings.iter().filter_map(|warning| nan(function, warning))).collect()
        }
        // Single functions return nothing else.
        Ok(_) => Vec::new(),
    }
}

fn nan(function: Function, warning: &str) -> Option<Fault> {
    let summary = warning.strip_suffix(NO_NUMBER)?;
    let fault = Fault::new(function, FaultKind::Nan, &without_indices(summary), truncate(warning));
    Some(Fault { summary: truncate(summary), ..fault })
}

/// A path with its indices left out: all elements of a list are made by the same line.
pub(crate) fn without_indices(path: &str) -> String {
    let parts = path.split('[').enumerate();
    let kept = parts
        .map(|(index, part)| if index == 0 { part } else { part.trim_start_matches(|c: char| c.is_ascii_digit()) });
    kept.collect::<Vec<_>>().join("[")
}

fn failed(dialect: Dialect, function: Function, failure: &Failure, sources: &Sources) -> Option<Fault> {
    let at = failure.line.map(|line| format!(" at line {line}")).unwrap_or_default();
    let (kind, site, summary) = match failure.kind {
        FailureKind::Syntax => return None,
        FailureKind::Thrown if dialect != Dialect::Ts013 && is_deliberate(failure, sources) => return None,
        FailureKind::Thrown => {
            let class = class(&failure.message);
            (FaultKind::Throws, format!("{at} {class}"), format!("throws {class}{at}"))
        }
        FailureKind::Fuel | FailureKind::Time => (FaultKind::Endless, String::new(), "does not end".to_owned()),
        FailureKind::Memory => (FaultKind::Memory, String::new(), "needs too much memory".to_owned()),
        FailureKind::Stack => (FaultKind::Stack, String::new(), "calls itself too deeply".to_owned()),
        FailureKind::Output => (FaultKind::Result, failure.message.clone(), truncate(&failure.message)),
        FailureKind::Broken => (FaultKind::Broken, String::new(), "breaks the sandbox".to_owned()),
    };
    let fault = Fault::new(function, kind, &site, describe(failure, sources));
    Some(Fault { summary, line: failure.line, ..fault })
}

/// The class of what was thrown, or the beginning of its text.
fn class(message: &str) -> String {
    let name = message.split([':', '\n']).next().unwrap_or_default();
    let is_name = name.ends_with("Error") && name.chars().all(|character| character.is_ascii_alphanumeric());
    if is_name { name.to_owned() } else { "an exception".to_owned() }
}

/// Returns true if the author meant to throw: v2 and ChirpStack 3 have no other way to refuse a message.
fn is_deliberate(failure: &Failure, sources: &Sources) -> bool {
    if !ENGINE_ERRORS.contains(&class(&failure.message).as_str()) {
        return true;
    }
    let text = sources.text(failure.slot);
    let line = failure.line.and_then(|line| text.lines().nth((line as usize).checked_sub(1)?)).unwrap_or_default();
    let before = failure.column.map_or(0, |column| column.saturating_sub(1) as usize);
    let thrown: String = line.chars().skip(before).collect();
    thrown.starts_with("throw") || thrown.strip_prefix("new ").is_some_and(|new| new.contains("Error("))
}
