//! The bodies of requests and responses: a message for a codec, and its outcome.

use std::collections::BTreeMap;

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use runtime::Dialect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::Timestamp;

use crate::{Error, cost::Cost};

/// Base64 with or without padding.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The port of messages that name none.
const DEFAULT_PORT: u8 = 1;

/// A message to decode (`payload` or `hex`) or to encode (`fields`).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Message")]
pub(crate) struct MessageBody {
    /// The payload to decode, in base64.
    payload: Option<String>,
    /// The payload to decode, in hexadecimal.
    hex: Option<String>,
    /// The object to encode.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    fields: Option<Box<RawValue>>,
    /// The LoRaWAN port; 1 by default.
    port: Option<u8>,
    /// When the message was received; now by default.
    time: Option<Timestamp>,
    /// The variables of the device, which the codec finds in `input.variables`.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    variables: Option<Box<RawValue>>,
    /// The calling convention: `ts013`, `v2` or `chirpstack3`; by default the one that the source follows.
    dialect: Option<String>,
}

/// A valid message.
pub(crate) struct Message {
    pub(crate) input: Input,
    pub(crate) port: u8,
    pub(crate) time: Option<Timestamp>,
    pub(crate) dialect: Option<Dialect>,
    variables: Option<Box<RawValue>>,
}

/// Input of a codec.
pub(crate) enum Input {
    Payload(Vec<u8>),
    /// The text of a JSON object.
    Fields(Box<RawValue>),
}

/// The result of a message.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Result")]
pub(crate) struct CodecResult {
    /// The decoded fields; null if the codec returned none. Absent after encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub(crate) fields: Option<Box<RawValue>>,
    /// The result of `normalizeUplink`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    normalized: Option<Box<RawValue>>,
    /// False if the codec's validator refused the fields. Absent after encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid: Option<bool>,
    /// The encoded payload, in base64. Absent after decoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<String>,
    /// The port that the encoder chose, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u8>,
    /// Warnings of the codec, and about its result.
    warnings: Vec<String>,
    #[serde(flatten)]
    cost: Cost,
}

/// The failure of a codec; these members stand beside those of the error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FunctionFailure {
    /// `decoder`, `converter`, `validator` or `encoder`.
    function: &'static str,
    /// The kind of failure, such as `thrown` or `fuel`.
    kind: &'static str,
    /// The line in the source, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// The column in that line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u32>,
    #[serde(flatten)]
    cost: Cost,
}

/// A message that has no result, in the response to several.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
pub(crate) struct FailedMessage {
    /// The failure in one sentence.
    pub(crate) error: String,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<FunctionFailure>,
}

impl MessageBody {
    /// A payload with nothing else, for requests in another form.
    pub(crate) fn of_payload(payload: &[u8], port: Option<u8>) -> Self {
        Self { payload: Some(STANDARD.encode(payload)), port, ..Self::default() }
    }

    pub(crate) fn has_fields(&self) -> bool {
        self.fields.is_some()
    }

    /// Fields with nothing else, for requests in another form.
    pub(crate) fn of_fields(fields: Box<RawValue>, port: Option<u8>) -> Self {
        Self { fields: Some(fields), port, ..Self::default() }
    }
}

impl TryFrom<MessageBody> for Message {
    type Error = Error;

    fn try_from(body: MessageBody) -> Result<Self, Error> {
        let input = match (body.payload, body.hex, body.fields) {
            (Some(payload), None, None) => Input::Payload(from_base64("payload", &payload)?),
            (None, Some(text), None) => {
                let bytes = hex::decode(text.replace([' ', ':', '-'], ""));
                Input::Payload(bytes.map_err(|error| Error::invalid("hex", error))?)
            }
            (None, None, Some(fields)) => Input::Fields(object("fields", fields)?),
            _ => return Err(Error::invalid("message", "it must have one of `payload`, `hex` and `fields`")),
        };
        let dialect = body.dialect.map(|name| dialect(&name)).transpose()?;
        let variables = body.variables.map(|variables| object("variables", variables)).transpose()?;
        Ok(Self { input, port: body.port.unwrap_or(DEFAULT_PORT), time: body.time, dialect, variables })
    }
}

impl Message {
    /// Returns the codec's input besides the payload, in the form that `runtime` expects.
    pub(crate) fn extra(&self) -> String {
        self.variables.as_ref().map_or_else(String::new, |variables| format!(r#"{{"variables":{variables}}}"#))
    }
}

impl CodecResult {
    pub(crate) fn decoded(
        fields: Box<RawValue>,
        normalized: Option<Box<RawValue>>,
        valid: bool,
        warnings: Vec<String>,
        cost: Cost,
    ) -> Self {
        Self { fields: Some(fields), normalized, valid: Some(valid), warnings, cost, ..Self::default() }
    }

    pub(crate) fn encoded(bytes: &[u8], port: Option<u8>, warnings: Vec<String>, cost: Cost) -> Self {
        Self { payload: Some(STANDARD.encode(bytes)), port, warnings, cost, ..Self::default() }
    }

    pub(crate) fn fuel(&self) -> u64 {
        self.cost.fuel
    }
}

impl FunctionFailure {
    /// The details of an error of a codec.
    pub(crate) fn of(error: &Error) -> Option<Self> {
        let Error::Codec { failure, cost, .. } = error else { return None };
        Some(Self {
            function: failure.slot.name(),
            kind: failure.kind.name(),
            line: failure.line,
            column: failure.column,
            cost: (**cost).clone(),
        })
    }
}

/// Reads base64, padded or not.
pub(crate) fn from_base64(what: &'static str, text: &str) -> Result<Vec<u8>, Error> {
    LENIENT.decode(text).map_err(|error| Error::invalid(what, format_args!("it is not base64: {error}")))
}

fn object(what: &'static str, json: Box<RawValue>) -> Result<Box<RawValue>, Error> {
    if json.get().starts_with('{') { Ok(json) } else { Err(Error::invalid(what, "it must be a JSON object")) }
}

fn dialect(name: &str) -> Result<Dialect, Error> {
    Dialect::from_name(name).ok_or_else(|| {
        let names = Dialect::ALL.map(Dialect::name).join(", ");
        Error::invalid("dialect", format_args!("it must be one of {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Message, String> {
        let body: MessageBody = serde_json::from_str(json).map_err(|error| error.to_string())?;
        body.try_into().map_err(|error: Error| error.to_string())
    }

    #[test]
    fn payloads_come_in_two_notations() {
        for json in [r#"{"payload": "AQL/"}"#, r#"{"hex": "0102FF"}"#, r#"{"hex": "01 02:ff"}"#] {
            let message = read(json).unwrap();
            assert!(matches!(&message.input, Input::Payload(bytes) if bytes == &[1, 2, 255]), "{json}");
            assert_eq!(message.port, 1);
        }
        assert!(matches!(read(r#"{"payload": "AQ"}"#).unwrap().input, Input::Payload(bytes) if bytes == [1]));
    }

    #[test]
    fn mistakes_are_named() {
        for (json, reason) in [
            ("{}", "one of `payload`, `hex` and `fields`"),
            (r#"{"payload": "AQ==", "hex": "01"}"#, "one of `payload`, `hex` and `fields`"),
            (r#"{"payload": "A*"}"#, "not base64"),
            (r#"{"hex": "012"}"#, "hex not valid"),
            (r#"{"fields": [1]}"#, "fields not valid: it must be a JSON object"),
            (r#"{"hex": "01", "variables": "x"}"#, "variables not valid: it must be a JSON object"),
            (r#"{"hex": "01", "dialect": "goja"}"#, "dialect not valid: it must be one of ts013, v2, chirpstack3"),
            (r#"{"hex": "01", "port": 256}"#, "256"),
            (r#"{"hex": "01", "time": "2300-01-01T00:00:00Z"}"#, "between the years 1678 and 2261"),
            (r#"{"hex": "01", "fport": 1}"#, "unknown field `fport`"),
        ] {
            let told = read(json).err().unwrap_or_default();
            assert!(told.contains(reason), "{json}: {told}");
        }
    }
}
