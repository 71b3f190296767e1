//! The result of a message, as JSON for programs.

use runtime::{CallOutcome, Failure, Value};
use serde::Serialize;
use serde_json::value::RawValue;
use workbench::{log_line, microseconds};

/// The result of a message, also if the functions failed.
///
/// The JSON of functions is written as it is, because it may have lone surrogates.
#[derive(Default, Serialize)]
pub(super) struct Report<'a> {
    /// The sender's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    normalized: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    /// Null if an encoder returned none.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<Option<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<ReportedFailure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logs: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fuel: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    microseconds: Option<f64>,
    /// The reason why a line is no message.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct ReportedFailure<'a> {
    function: &'static str,
    kind: &'static str,
    message: &'a str,
    line: Option<u32>,
    column: Option<u32>,
}

impl<'a> Report<'a> {
    pub(super) fn of(outcome: &'a CallOutcome) -> Self {
        let report = Self {
            warnings: Some(&outcome.warnings),
            logs: Some(outcome.logs.iter().map(log_line).collect()),
            fuel: Some(outcome.fuel),
            microseconds: Some(microseconds(outcome.elapsed)),
            ..Self::default()
        };
        match &outcome.result {
            Ok(Value::Fields { json, normalized, valid }) => {
                Self { fields: Some(json), normalized: normalized.as_deref(), valid: Some(*valid), ..report }
            }
            Ok(Value::Returned { json }) => Self { fields: json.as_deref(), ..report },
            Ok(Value::Bytes { bytes, port }) => Self { bytes: Some(hex::encode(bytes)), port: Some(*port), ..report },
            Err(failure) => Self { failure: Some(failure.into()), ..report },
        }
    }

    pub(super) fn with_id(self, id: Option<&'a RawValue>) -> Self {
        Self { id, ..self }
    }

    /// Of a line that is no message.
    pub(super) fn of_error(error: &'a str) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl<'a> From<&'a Failure> for ReportedFailure<'a> {
    fn from(failure: &'a Failure) -> Self {
        Self {
            function: failure.slot.name(),
            kind: failure.kind.name(),
            message: &failure.message,
            line: failure.line,
            column: failure.column,
        }
    }
}
