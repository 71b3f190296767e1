//! Bodies about the versions of payload functions, which v2 did not have.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Timestamp;

use super::super::json::{is_default, null_is_default};

/// A version of the payload functions and the payload format of an application.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// 1, 2 and so on for each application.
    pub number: u32,
    /// The SHA-256 of the functions and their dialect, in hexadecimal.
    pub hash: String,
    /// When it was made, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Who made it, such as `user bob`, if that is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub changed_by: String,
    /// A note for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub note: String,
    /// A URL that begins with https.
    #[serde(default, skip_serializing_if = "is_default")]
    pub link: String,
    /// True if messages are processed with it, except those of devices that a candidate has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub live: bool,
    /// Which share of the devices has it, in percent, if it is a candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<f64>,
    /// The version of which this one is a copy, if it is one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restores: u32,
    /// The payload format.
    #[serde(default, skip_serializing_if = "is_default")]
    pub payload_format: String,
    /// The dialect of the first function that there is, of decoder, converter, validator and encoder; empty if there is
    /// none, or if it is not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialect: String,
    /// The limits of the functions when it was made, by name; empty if there are no functions, or if their limits are
    /// not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
    /// When and why it was abandoned, if the handler did so when a share of the devices had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<Abandonment>,
    /// The functions; lists leave them out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<VersionFunctions>,
}

/// A version that failed on more uplinks than the live one, so that all devices have the live one again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Abandonment {
    /// When it was abandoned.
    pub time: Timestamp,
    /// By how much the part of uplinks on which it failed could exceed that of the live version, in percent.
    pub margin_percent: f64,
    /// Its results for uplinks.
    pub results: VersionResults,
    /// The number of the version that was live.
    #[serde(default, skip_serializing_if = "is_default")]
    pub live_version: u32,
    /// The results of that version for uplinks.
    pub live_results: VersionResults,
}

/// Results of a version for uplinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VersionResults {
    /// Number of uplinks.
    #[serde(skip_serializing_if = "is_default")]
    pub uplinks: u64,
    /// Number of them that failed, or that the validator refused.
    #[serde(skip_serializing_if = "is_default")]
    pub failed: u64,
    /// The fuel of an uplink on average.
    #[serde(skip_serializing_if = "is_default")]
    pub mean_fuel: u64,
}

/// The payload functions of a version, as JavaScript.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct VersionFunctions {
    /// Turns bytes into an object.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub decoder: String,
    /// Converts the values of that object.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub converter: String,
    /// Decides whether the message is published.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub validator: String,
    /// Turns an object into bytes.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_is_default")]
    pub encoder: String,
}

/// The versions of an application that are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VersionList {
    /// The versions, the newest first.
    pub versions: Vec<Version>,
}

/// Functions to make live. Those that are omitted are cleared, but one, or a payload format, is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewVersion {
    /// `custom`, `cayennelpp` or another format; with functions, `custom` if it is omitted.
    #[serde(deserialize_with = "null_is_default")]
    pub payload_format: String,
    /// Sources of the four payload functions.
    #[serde(deserialize_with = "null_is_default")]
    pub functions: VersionFunctions,
    /// A note for people, on one line.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(length(max = 500))]
    pub note: String,
    /// A URL that begins with https.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(length(max = 500))]
    pub link: String,
}

/// The note and the link of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VersionLabel {
    /// A note for people, on one line.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(length(max = 500))]
    pub note: String,
    /// A URL that begins with https.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(length(max = 500))]
    pub link: String,
}

/// The changes between two versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VersionComparison {
    /// A unified diff of each function and of the payload format; empty if they are equal.
    pub diff: String,
}
