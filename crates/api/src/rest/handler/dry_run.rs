//! Bodies of dry runs: functions, their input, and the result.
//!
//! v2 only had dry runs over gRPC; these are its messages in the same JSON format as the others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    super::json::{Base64, bytes, is_default, null_is_default, number, text_number},
    HandlerApplication,
};
use crate::handler;

/// A dry run of an uplink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DryUplink {
    /// The payload of at most 255 bytes, in base64.
    #[serde(skip_serializing_if = "is_default", with = "bytes")]
    #[schemars(with = "Base64")]
    pub payload: Vec<u8>,
    /// The functions to run; they are not stored.
    #[serde(deserialize_with = "null_is_default")]
    pub app: HandlerApplication,
    /// The LoRaWAN port.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    #[schemars(range(max = 255))]
    pub port: u32,
    /// The id of a stored uplink to decode again, instead of `payload` and `port`: the functions get its bytes, port,
    /// time, seed and further input. It also takes the right to read messages.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub record: String,
}

/// A dry run of a downlink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DryDownlink {
    /// A payload that is passed through, in base64; instead of fields.
    #[serde(skip_serializing_if = "is_default", with = "bytes")]
    #[schemars(with = "Base64")]
    pub payload: Vec<u8>,
    /// The encoder's input: the text of a JSON object.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub fields: String,
    /// The functions to run; they are not stored.
    #[serde(deserialize_with = "null_is_default")]
    pub app: HandlerApplication,
    /// The LoRaWAN port.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    #[schemars(range(max = 255))]
    pub port: u32,
}

/// The result of a dry run of an uplink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DryUplinkResult {
    /// The payload, in base64.
    #[serde(skip_serializing_if = "is_default", with = "bytes")]
    #[schemars(with = "Base64")]
    pub payload: Vec<u8>,
    /// The text of a JSON object, or `null`.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub fields: String,
    /// The JSON that `normalizeUplink` made of the fields, as text; omitted for none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub normalized: String,
    /// True if the validator accepted it; omitted if not.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub valid: bool,
    /// The log entries of the functions.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub logs: Vec<LogEntry>,
    /// Warnings of the functions.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub warnings: Vec<String>,
    /// The cost of the run.
    #[serde(flatten)]
    pub cost: Cost,
}

/// The result of a simulated uplink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SimulatedUplinkResult {
    /// The cost of the run.
    #[serde(flatten)]
    pub cost: Cost,
    /// The result of the functions; only for callers that may read the functions.
    #[serde(skip_serializing_if = "is_default")]
    pub outcome: Option<UplinkOutcome>,
}

/// The answer to an uplink of a batch: the result that a request with it alone returns, or an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UplinkAnswer {
    /// The line that it came in, from 1.
    pub line: u64,
    /// The result, if it was handled.
    #[serde(flatten)]
    pub result: Option<SimulatedUplinkResult>,
    /// The error, if it was refused. Other lines are not concerned.
    #[serde(flatten)]
    pub error: Option<UplinkError>,
}

/// The error of an uplink of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UplinkError {
    /// The HTTP status that a request with it alone gets.
    pub status: u16,
    /// The error message.
    pub error: String,
    /// The gRPC code, not the HTTP status.
    pub code: i32,
    /// The same as `error`.
    pub message: String,
    /// When to try again, if a rate limit is exceeded.
    #[serde(skip_serializing_if = "is_default")]
    pub retry_after_s: u64,
}

/// The result of the functions for an uplink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UplinkOutcome {
    /// The text of a JSON object; omitted if there is none.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub fields: String,
    /// The log entries of the functions.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub logs: Vec<LogEntry>,
    /// Warnings of the functions.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub warnings: Vec<String>,
    /// The reason why the uplink was published without fields; omitted if no function failed.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub failure: String,
}

/// The result of a dry run of a downlink.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DryDownlinkResult {
    /// The encoded payload, in base64.
    #[serde(skip_serializing_if = "is_default", with = "bytes")]
    #[schemars(with = "Base64")]
    pub payload: Vec<u8>,
    /// The log entries of the encoder.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub logs: Vec<LogEntry>,
    /// The cost of the run.
    #[serde(flatten)]
    pub cost: Cost,
}

/// A log entry of a payload function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogEntry {
    /// `decoder`, `converter`, `validator` or `encoder`.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub function: String,
    /// The logged values, each as JSON.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub fields: Vec<String>,
}

/// The cost of a message in the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cost {
    /// Units of fuel, as a string: the same for the same message on every machine.
    #[serde(skip_serializing_if = "is_default", with = "text_number")]
    #[schemars(with = "String")]
    pub fuel: u64,
    /// Time in the sandbox in microseconds, as a string.
    #[serde(skip_serializing_if = "is_default", with = "text_number")]
    #[schemars(with = "String")]
    pub microseconds: u64,
}

/// The failure of a payload function; these members are added to those of the error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FunctionFailure {
    /// `decoder`, `converter`, `validator` or `encoder`.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub function: String,
    /// The kind of failure, such as `thrown` or `fuel`.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub kind: String,
    /// The line in the function's source, from 1; omitted if unknown.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    pub line: u32,
    /// The column in that line, from 1; omitted if unknown.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "number::deserialize")]
    pub column: u32,
    /// A description of the failure in one sentence.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub reason: String,
    /// The line of the source, with a caret under the column.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub excerpt: String,
    /// The log entries up to the failure.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub logs: Vec<LogEntry>,
    /// The cost of the run.
    #[serde(flatten)]
    pub cost: Cost,
}

impl From<handler::DryUplinkResult> for DryUplinkResult {
    fn from(message: handler::DryUplinkResult) -> Self {
        let handler::DryUplinkResult { payload, fields, normalized, valid, logs, warnings, fuel, microseconds } =
            message;
        let cost = Cost { fuel, microseconds };
        Self { payload, fields, normalized, valid, logs: entries(logs), warnings, cost }
    }
}

impl From<handler::SimulatedUplinkResult> for SimulatedUplinkResult {
    fn from(message: handler::SimulatedUplinkResult) -> Self {
        let handler::SimulatedUplinkResult { fuel, microseconds, outcome } = message;
        Self { cost: Cost { fuel, microseconds }, outcome: outcome.map(Into::into) }
    }
}

impl From<handler::UplinkOutcome> for UplinkOutcome {
    fn from(message: handler::UplinkOutcome) -> Self {
        let handler::UplinkOutcome { fields, logs, warnings, failure } = message;
        Self { fields, logs: entries(logs), warnings, failure }
    }
}

impl From<handler::DryDownlinkResult> for DryDownlinkResult {
    fn from(message: handler::DryDownlinkResult) -> Self {
        let handler::DryDownlinkResult { payload, logs, fuel, microseconds } = message;
        Self { payload, logs: entries(logs), cost: Cost { fuel, microseconds } }
    }
}

impl From<handler::FunctionFailure> for FunctionFailure {
    fn from(message: handler::FunctionFailure) -> Self {
        Self {
            function: message.function,
            kind: message.kind,
            line: message.line,
            column: message.column,
            reason: message.reason,
            excerpt: message.excerpt,
            logs: entries(message.logs),
            cost: Cost { fuel: message.fuel, microseconds: message.microseconds },
        }
    }
}

fn entries(logs: Vec<handler::LogEntry>) -> Vec<LogEntry> {
    logs.into_iter().map(|handler::LogEntry { function, fields }| LogEntry { function, fields }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_dry_run_is_read_like_its_message() {
        let body: DryUplink =
            from_value(json!({"payload": "AQI=", "port": "7", "app": {"payloadFormat": "custom"}, "x": 1})).unwrap();
        assert_eq!((body.payload.as_slice(), body.port), (&[1, 2][..], 7));
        assert_eq!(body.app.payload_format, "custom");
        assert_eq!(from_value::<DryUplink>(json!({"record": null})).unwrap(), DryUplink::default());
    }

    #[test]
    fn what_came_of_it_is_written_like_its_message() {
        let logs = vec![handler::LogEntry { function: "decoder".into(), fields: vec!["1".into()] }];
        let result = handler::DryUplinkResult {
            payload: vec![1, 2],
            fields: "{}".into(),
            normalized: "[]".into(),
            valid: true,
            logs,
            warnings: vec!["late".into()],
            fuel: 1 << 60,
            microseconds: 7,
        };
        assert_eq!(
            to_value(DryUplinkResult::from(result)).unwrap(),
            json!({
                "payload": "AQI=", "fields": "{}", "normalized": "[]", "valid": true, "fuel": "1152921504606846976", "microseconds": "7",
                "logs": [{"function": "decoder", "fields": ["1"]}], "warnings": ["late"],
            })
        );
        assert_eq!(to_value(DryDownlinkResult::from(handler::DryDownlinkResult::default())).unwrap(), json!({}));
        let outcome = Some(handler::UplinkOutcome { failure: "no".into(), ..Default::default() });
        let result = handler::SimulatedUplinkResult { fuel: 9, microseconds: 0, outcome };
        assert_eq!(
            to_value(SimulatedUplinkResult::from(result)).unwrap(),
            json!({"fuel": "9", "outcome": {"failure": "no"}})
        );
    }
}
