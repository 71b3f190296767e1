//! The results of decoding and encoding payloads.

use runtime::{CallOutcome, Failure, LogEntry, Slot, Value};
use serde_json::value::RawValue;

use crate::{Error, error::FunctionError, registry::application::Application, status::cost::Cost};

/// The result of decoding, converting and validating a payload.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The fields, a JSON object; none if nothing was converted or there are no fields.
    pub fields: Option<Box<RawValue>>,
    /// Result of the decoder's `normalizeUplink` for the fields, if it has that function.
    pub normalized: Option<Box<RawValue>>,
    /// Verdict of the validator, which decides about publishing.
    pub validity: Validity,
    /// Reason why there are no fields, if decoding failed.
    pub error: Option<DecodeError>,
    /// The warnings that the functions returned.
    pub warnings: Vec<String>,
    /// Console output of the functions.
    pub logs: Vec<LogEntry>,
    /// Cost of running the functions.
    pub cost: Cost,
}

/// Verdict of the validator on a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// Nothing was converted, so nothing was validated.
    #[default]
    NotConverted,
    /// The validator accepted it, or there is none.
    Valid,
    /// The validator returned false.
    Invalid,
}

#[derive(Debug, Default)]
pub(crate) struct Encoded {
    pub(crate) payload: Vec<u8>,
    /// The port that the encoder chose, if it did.
    pub(crate) port: Option<u8>,
    /// The warnings that the encoder returned.
    pub(crate) warnings: Vec<String>,
    pub(crate) logs: Vec<LogEntry>,
    pub(crate) cost: Cost,
    /// The version of the functions, if an encoder ran and they are stored.
    pub(crate) version: Option<u32>,
}

/// Errors of decoding a payload.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A payload function failed.
    #[error("{0}")]
    Function(Failure),
    /// The payload is not valid Cayenne LPP.
    #[error("{0}")]
    CayenneLpp(Error),
}

impl DecodeError {
    /// The error of a dry run of `application`, with what its functions logged and cost.
    pub(crate) fn into_error(self, application: &Application, logs: Vec<LogEntry>, cost: Cost) -> Error {
        match self {
            Self::Function(failure) => FunctionError::new(failure, application.sources(), logs, cost).into(),
            Self::CayenneLpp(error) => error,
        }
    }
}

impl From<DecodeError> for Decoded {
    fn from(error: DecodeError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl From<CallOutcome> for Decoded {
    fn from(report: CallOutcome) -> Self {
        let cost = Cost { fuel: report.fuel, elapsed: report.elapsed };
        let decoded = match report.result {
            Ok(Value::Fields { json, normalized, valid }) => {
                let fields = (json.get() != "{}" && json.get() != "null").then_some(json);
                let validity = if valid { Validity::Valid } else { Validity::Invalid };
                Self { fields, normalized, validity, ..Self::default() }
            }
            Ok(Value::Bytes { .. } | Value::Returned { .. }) => {
                DecodeError::Function(Failure::malformed_reply(Slot::Decoder)).into()
            }
            Err(failure) => DecodeError::Function(failure).into(),
        };
        Self { warnings: report.warnings, logs: report.logs, cost, ..decoded }
    }
}
