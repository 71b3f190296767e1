//! The result of a message, as JSON for programs.

use runtime::{CallOutcome, Failure, Value};
use serde::Serialize;
use serde_json::{Map, Value as Json, json, value::RawValue};
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
    #[serde(flatten)]
    other: Map<String, Json>,
}

impl<'a> Report<'a> {
    pub(super) fn of(outcome: &'a CallOutcome) -> Self {
        let mut report = Self::default();
        match &outcome.result {
            Ok(Value::Fields { json, normalized, valid }) => {
                report.fields = Some(json);
                report.normalized = normalized.as_deref();
                report.set("valid", json!(valid));
            }
            Ok(Value::Returned { json }) => report.fields = json.as_deref(),
            Ok(Value::Bytes { bytes, port }) => {
                report.set("bytes", json!(hex::encode(bytes)));
                report.set("port", json!(port));
            }
            Err(failure) => report.set("failure", describe(failure)),
        }
        report.set("warnings", json!(outcome.warnings));
        report.set("logs", outcome.logs.iter().map(log_line).collect());
        report.set("fuel", json!(outcome.fuel));
        report.set("microseconds", json!(microseconds(outcome.elapsed)));
        report
    }

    pub(super) fn with_id(self, id: Option<&'a RawValue>) -> Self {
        Self { id, ..self }
    }

    /// Of a line that is no message.
    pub(super) fn of_error(error: &str) -> Self {
        let mut report = Self::default();
        report.set("error", json!(error));
        report
    }

    fn set(&mut self, name: &str, value: Json) {
        self.other.insert(name.to_owned(), value);
    }
}

fn describe(failure: &Failure) -> Json {
    json!({
        "function": failure.slot.name(),
        "kind": failure.kind.name(),
        "message": failure.message,
        "line": failure.line,
        "column": failure.column,
    })
}
