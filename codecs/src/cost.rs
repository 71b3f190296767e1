//! The cost of a message, and the codec's logs.

use runtime::{CallOutcome, LogEntry};
use schemars::JsonSchema;
use serde::Serialize;

/// The cost of a run, and the codec's logs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Cost {
    /// The codec's output on the console.
    logs: Vec<Log>,
    /// Fuel: the same for the same message on every machine.
    pub(crate) fuel: u64,
    /// Time in the sandbox, in microseconds.
    microseconds: u64,
}

/// One call of a `console` method.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Log {
    /// `decoder`, `converter`, `validator` or `encoder`.
    function: &'static str,
    /// The arguments, each as JSON text.
    fields: Vec<String>,
}

impl Cost {
    pub(crate) fn of(outcome: &CallOutcome) -> Self {
        Self {
            logs: outcome.logs.iter().map(Log::from).collect(),
            fuel: outcome.fuel,
            microseconds: u64::try_from(outcome.elapsed.as_micros()).unwrap_or(u64::MAX),
        }
    }
}

impl From<&LogEntry> for Log {
    fn from(entry: &LogEntry) -> Self {
        Self { function: entry.slot.name(), fields: entry.fields.clone() }
    }
}
