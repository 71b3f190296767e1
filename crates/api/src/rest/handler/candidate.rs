//! Bodies about functions that a share of the devices tries, which v2 did not have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    super::json::{is_default, null_is_default},
    VersionFunctions, VersionResults,
};

/// Functions to try on a share of the devices. Those that are omitted are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewCandidate {
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
    /// The share of the devices, in percent.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(range(min = 0.01, max = 99.99))]
    pub share_percent: f64,
    /// By how much the part of uplinks on which it fails may exceed that of the live version, in percent; 5 if it is
    /// omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub margin_percent: Option<f64>,
    /// The least number of uplinks of both versions before it is abandoned; 20 if it is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub uplinks_min: Option<u32>,
}

/// Which devices have a candidate, and when it is abandoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Trial {
    /// The share of the devices, in percent.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(range(min = 0.01, max = 99.99))]
    pub share_percent: f64,
    /// By how much the part of uplinks on which it fails may exceed that of the live version, in percent; 5 if it is
    /// omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub margin_percent: Option<f64>,
    /// The least number of uplinks of both versions before it is abandoned; 20 if it is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub uplinks_min: Option<u32>,
}

/// A version that a share of the devices has, and what came of uplinks since it has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Candidate {
    /// The number of the version.
    pub version: u32,
    /// The share of the devices, in percent.
    pub share_percent: f64,
    /// By how much the part of uplinks on which it fails may exceed that of the live version, in percent.
    pub margin_percent: f64,
    /// The least number of uplinks of both versions before it is abandoned.
    pub uplinks_min: u32,
    /// Its results for uplinks.
    pub results: VersionResults,
    /// The number of the version of the other devices.
    #[serde(skip_serializing_if = "is_default")]
    pub live_version: u32,
    /// Its results for uplinks.
    pub live_results: VersionResults,
}
