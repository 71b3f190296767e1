//! Measurements, in the form in which they are written.

use std::path::PathBuf;

use runtime::Engine;
use serde::{Deserialize, Serialize};

use super::statistics::{Histogram, Summary};

/// The costs of codecs. Its JSON is also the format of a baseline.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bench {
    /// The version of Airlock that measured.
    pub airlock: String,
    /// The SHA-256 of the program in its sandboxes, in hexadecimal: another charges other fuel.
    #[serde(default)]
    pub guest: String,
    /// Each codec.
    pub codecs: Vec<CodecBench>,
}

/// The costs of one codec.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CodecBench {
    /// Its name.
    pub id: String,
    /// The file of its script, as far as there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The reason why it cannot be loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Cost of loading it; absent if that fails.
    pub loading: Option<Loading>,
    /// Its messages.
    pub messages: Vec<MessageBench>,
    /// The fuel of all messages together by line, if it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineFuel>,
}

/// Cost of loading a codec.
#[derive(Debug, Serialize, Deserialize)]
pub struct Loading {
    /// Time to parse and evaluate it.
    pub time: Summary,
    /// Fuel for the same.
    pub fuel: u64,
    /// Memory that it takes between messages, in bytes.
    pub idle_bytes: usize,
    /// Compared with a baseline.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<Change>,
}

/// Cost of one message.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageBench {
    /// The author's description; may be empty.
    pub description: String,
    /// The function that runs.
    pub function: String,
    /// The port that it sees.
    pub port: u8,
    /// Its input: hexadecimal bytes, or JSON.
    pub input: String,
    /// The reason why it fails, if it does; it is measured nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Fuel, which is the same each time.
    pub fuel: u64,
    /// The most fuel that a message may use.
    pub fuel_max: u64,
    /// Time of the first message, which maps memory, in microseconds.
    pub first_microseconds: f64,
    /// Time of one message, with the preparation and reset of the sandbox: that of a batch by its number of messages.
    pub time: Summary,
    /// Time of each single message.
    pub single: Summary,
    /// Number of messages by duration.
    #[serde(skip)]
    pub(crate) histogram: Histogram,
    /// The same function elsewhere, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// Compared with a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// The fuel of a line.
#[derive(Debug, Serialize, Deserialize)]
pub struct LineFuel {
    /// The line, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
    /// The fuel that it used, with the built-in functions that it called.
    pub fuel: u64,
}

/// Difference between a measurement and that of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The fuel of the baseline.
    pub fuel_before: u64,
    /// Increase of fuel, in percent of `fuel_before`; negative for a decrease.
    pub fuel_percent: f64,
    /// Increase of the median time, in percent of that of the baseline.
    pub time_percent: f64,
    /// True if the difference in time is more than chance.
    pub is_time_certain: bool,
}

/// Time that the same function takes in another engine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// It ran.
    Ran {
        /// All messages in one context, so that each finds what earlier ones left.
        warm: Summary,
        /// Each message in a new context.
        fresh: Summary,
    },
    /// It failed, and why.
    Failed(String),
}

impl Bench {
    /// The measurements of `codecs` by `engine`.
    pub fn new(engine: &Engine, codecs: Vec<CodecBench>) -> Self {
        Self { airlock: env!("CARGO_PKG_VERSION").to_owned(), guest: hex::encode(engine.guest_digest()), codecs }
    }

    /// Each failure: the codec that cannot be loaded, or the message that fails.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.codecs.iter().flat_map(|codec| {
            let messages = codec.messages.iter().filter_map(|message| message.failure.as_deref());
            codec.failure.as_deref().into_iter().chain(messages).map(|failure| (codec.id.as_str(), failure))
        })
    }
}

impl MessageBench {
    /// Its name in reports.
    pub(crate) fn title(&self, number: usize) -> String {
        let input: String = self.input.chars().take(24).collect();
        let rest = if input.len() < self.input.len() { "…" } else { "" };
        match self.description.is_empty() {
            true => format!("{number}  {}, port {}, {input}{rest}", self.function, self.port),
            false => format!("{number}  {}", self.description),
        }
    }
}
