//! Bodies about the messages that were kept, which v2 did not have.

mod chart;
mod decode_again;
mod send_again;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use types::Timestamp;

pub use self::{
    chart::{Chart, ChartPoint, ChartSeries},
    decode_again::{ChangedField, DecodeAgain, DecodeReport, FieldExample, LowerLimit, NewFailure, Verdicts},
    send_again::{RefusedMessages, SendAgain, SendReport, SendTo},
};
use super::{
    super::json::{Base64, bytes, is_default, text_number},
    LogEntry,
};

/// The trailer of an export that names files of history that could not be read.
pub const UNREADABLE_TRAILER: &str = "airlock-unreadable-files";

/// An uplink, a downlink or an event, as it passed the handler.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// Text without meaning.
    pub id: String,
    /// When it was received.
    pub time: Timestamp,
    /// When it was recorded, by which records are sorted.
    pub recorded: Timestamp,
    /// `up`, or the name of an event such as `down/sent`.
    pub kind: String,
    /// The device.
    pub dev_id: String,
    /// The LoRaWAN port.
    #[serde(default, skip_serializing_if = "is_default")]
    pub port: u32,
    /// The frame counter.
    #[serde(default, skip_serializing_if = "is_default")]
    pub counter: u32,
    /// True if an acknowledgement was asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirmed: bool,
    /// True if the device had sent this counter before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_retry: bool,
    /// The payload, in base64.
    #[serde(default, skip_serializing_if = "is_default", with = "bytes")]
    #[schemars(with = "Base64")]
    pub payload_raw: Vec<u8>,
    /// The result of the functions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub payload_fields: Option<Box<RawValue>>,
    /// The result of `normalizeUplink`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub normalized_payload: Option<Box<RawValue>>,
    /// The body of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub event: Option<Box<RawValue>>,
    /// Metadata of its reception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub metadata: Option<Box<RawValue>>,
    /// Further members of the decoder's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub extra: Option<Box<RawValue>>,
    /// `decoded`, `failed`, `invalid` or `not_converted`.
    pub outcome: String,
    /// The reason why there are no fields, if a function failed, or why the downlink or the join of an event failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failure: String,
    /// Output of the functions on the console.
    #[serde(default, skip_serializing_if = "is_default")]
    pub logs: Vec<LogEntry>,
    /// Warnings that the application received.
    #[serde(default, skip_serializing_if = "is_default")]
    pub warnings: Vec<String>,
    /// Fuel that the functions used, as a string.
    #[serde(default, skip_serializing_if = "is_default", with = "text_number")]
    #[schemars(with = "String")]
    pub fuel: u64,
    /// Time of the functions in the sandbox in microseconds, as a string; omitted if none ran, or nobody measured.
    #[serde(default, skip_serializing_if = "is_default", with = "text_number")]
    #[schemars(with = "String")]
    pub microseconds: u64,
    /// The SHA-256 of the functions and their dialect, in hexadecimal.
    #[serde(default, skip_serializing_if = "is_default")]
    pub functions: String,
    /// The number of the version with these functions, unless it was dropped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u32,
    /// The limits within which the functions ran, by name, if they are known; lists leave them out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// The seed of `Math.random` in the functions, as a string.
    #[serde(default, skip_serializing_if = "is_default", with = "text_number")]
    #[schemars(with = "String")]
    pub seed: u64,
    /// Number of times that it was decoded again before; omitted if it was live.
    #[serde(default, skip_serializing_if = "is_default")]
    pub revision: u32,
    /// The id of the record that this one corrects.
    #[serde(default, skip_serializing_if = "is_default")]
    pub corrects: String,
    /// Its corrections, the highest revision first: at most ten, the newest. Lists leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Correction>,
    /// The files of history that could not be read, and may have corrections of it. Lists leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable_files: Vec<String>,
}

/// A later result of an uplink, whose record is kept beside the original.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Correction {
    /// The id of its record.
    pub id: String,
    /// Its `revision`.
    pub revision: u32,
    /// The number of the version whose functions decoded it, unless it was dropped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u32,
    /// When it was recorded.
    pub recorded: Timestamp,
}

/// A page of records.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RecordList {
    /// The records, the newest first.
    pub records: Vec<Record>,
    /// `before` of the next page; omitted on the last one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub next: String,
    /// The files that could not be read. Their records are missing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unreadable: Vec<String>,
}
