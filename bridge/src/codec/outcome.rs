//! Inputs of a codec besides the payload, its results and its errors.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use runtime::{Failure, LogEntry, SourcesHash};
use serde_json::value::RawValue;

/// A message for a codec, besides its payload. Only scripts need it.
#[derive(Default)]
pub struct Input<'a> {
    /// The port; zero for none.
    pub port: u8,
    /// Time at which the message was received, in milliseconds since 1970.
    pub time_ms: i64,
    /// The seed of `Math.random`: the same for the same message.
    pub seed: u64,
    /// The device's variables, a JSON object.
    pub variables: &'a str,
}

/// The seed of a message with this identity: the same for copies of it, on every machine.
pub fn seed(identity: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    hasher.finish()
}

/// A decoded uplink.
#[derive(Debug, Default)]
pub struct Decoded {
    /// A JSON object; none if there is no codec, or it decodes nothing.
    pub object: Option<Box<RawValue>>,
    /// Warnings of the codec.
    pub warnings: Vec<String>,
}

/// A run of a script, also of one that failed.
#[derive(Debug, Default)]
pub struct Run {
    /// The hash of the functions; none if none ran.
    pub functions: Option<SourcesHash>,
    /// The seed of `Math.random`.
    pub seed: u64,
    /// Further members of the functions' input, a JSON object; empty for none.
    pub extra: String,
    /// Console output.
    pub logs: Vec<LogEntry>,
    /// The fuel that was used.
    pub fuel: u64,
    /// The time in the sandbox.
    pub elapsed: Duration,
}

/// An encoded downlink.
#[derive(Debug)]
pub struct Encoded {
    /// The payload.
    pub bytes: Vec<u8>,
    /// The port that the encoder chose.
    pub port: Option<u8>,
}

/// Reasons why a codec has no result. Where ChirpStack has a text for it, this is the same.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The function did not return.
    #[error("{}", failed(function, failure))]
    Failed {
        /// Its name.
        function: &'static str,
        /// The failure of the run.
        failure: Failure,
    },
    /// The function returned errors.
    #[error("{function} returned errors: {}", errors.join(", "))]
    Errors {
        /// Its name.
        function: &'static str,
        /// In its own words.
        errors: Vec<String>,
    },
    /// The result of the function lacks a member.
    #[error("{function} did not return '{member}'")]
    Missing {
        /// Its name.
        function: &'static str,
        /// The name of the member.
        member: &'static str,
    },
    /// The payload is malformed.
    #[error("the payload is not Cayenne LPP: {0}")]
    CayenneLpp(String),
    /// No sandbox was free in time.
    #[error("too many messages of this codec wait for a sandbox: it takes too long")]
    Busy,
    /// The network does not tell it.
    #[error("the codec is not known: {0}")]
    Unknown(String),
    /// The message names another device than its topic.
    #[error("the device is not that of the topic")]
    Foreign,
    /// A downlink is wrong, or cannot be queued.
    #[error("{0}")]
    Command(String),
}

/// Says which function failed: some failures name it themselves.
fn failed(function: &str, failure: &Failure) -> String {
    let text = failure.to_string();
    if text.starts_with('`') { text } else { format!("{function}: {text}") }
}

impl CodecError {
    /// A function that did not return.
    pub fn failed(function: &'static str, failure: Failure) -> Self {
        Self::Failed { function, failure }
    }

    /// Returns true if the codec ran, or cannot run at all; otherwise nothing is known about the payload.
    pub fn is_verdict(&self) -> bool {
        !matches!(self, Self::Busy | Self::Unknown(_) | Self::Foreign)
    }

    /// Details for the context of a `log` event.
    pub fn context(&self) -> BTreeMap<&'static str, String> {
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
