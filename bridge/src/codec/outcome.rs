//! What a codec gets besides the payload, and what becomes of it.

use std::{collections::BTreeMap, time::Duration};

use runtime::Failure;
use serde_json::value::RawValue;

/// A message for a codec, besides its payload. Only scripts need it.
#[derive(Default)]
pub(crate) struct Input<'a> {
    /// The port; zero for none.
    pub(crate) port: u8,
    /// When the message was received, in milliseconds since 1970.
    pub(crate) time_ms: i64,
    /// The seed of `Math.random`: the same for the same message.
    pub(crate) seed: u64,
    /// The device's variables, a JSON object.
    pub(crate) variables: &'a str,
}

/// A decoded uplink.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) object: Option<Box<RawValue>>,
    pub(crate) warnings: Vec<String>,
    pub(crate) fuel: u64,
    pub(crate) elapsed: Duration,
}

/// An encoded downlink.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// The port that the encoder chose.
    pub(crate) port: Option<u8>,
}

/// Why a codec has no result. Where ChirpStack has a text for it, this is the same.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodecError {
    #[error("{}", failed(function, failure))]
    Failed { function: &'static str, failure: Failure },
    #[error("{function} returned errors: {}", errors.join(", "))]
    Errors { function: &'static str, errors: Vec<String> },
    #[error("{function} did not return '{member}'")]
    Missing { function: &'static str, member: &'static str },
    #[error("the payload is not Cayenne LPP: {0}")]
    CayenneLpp(String),
    #[error("too many messages of this codec wait for a sandbox: it takes too long")]
    Busy,
    #[error("the codec is not known: {0}")]
    Unknown(String),
    #[error("the device is not that of the topic")]
    Foreign,
    #[error("{0}")]
    Command(String),
}

/// Says which function failed: some failures name it themselves.
fn failed(function: &str, failure: &Failure) -> String {
    let text = failure.to_string();
    if text.starts_with('`') { text } else { format!("{function}: {text}") }
}

impl CodecError {
    pub(crate) fn failed(function: &'static str, failure: Failure) -> Self {
        Self::Failed { function, failure }
    }

    /// Whether the codec ran, or cannot run at all; otherwise nothing is known about the payload.
    pub(crate) fn is_verdict(&self) -> bool {
        !matches!(self, Self::Busy | Self::Unknown(_) | Self::Foreign)
    }

    /// Details for the context of a `log` event.
    pub(crate) fn context(&self) -> BTreeMap<&'static str, String> {
        let mut context = BTreeMap::new();
        match self {
            Self::Failed { function, failure } => {
                context.insert("function", (*function).to_owned());
                context.insert("reason", failure.kind.name().to_owned());
                failure.line.map(|line| context.insert("line", line.to_string()));
                failure.column.map(|column| context.insert("column", column.to_string()));
            }
            Self::Errors { function, .. } | Self::Missing { function, .. } => {
                context.insert("function", (*function).to_owned());
                context.insert("reason", "errors".to_owned());
            }
            _ => {}
        }
        context
    }
}
