//! Bodies about charts of what was kept, which v2 did not have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Timestamp;

use super::super::super::json::is_default;

/// The numeric fields of a device over time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Chart {
    /// Where it begins.
    pub since: Timestamp,
    /// Where it ends.
    pub until: Timestamp,
    /// The time that a point stands for.
    pub bucket_seconds: f64,
    /// Number of uplinks that it is made of.
    pub examined: u64,
    /// True if there are more, older uplinks than a chart is made of. They are missing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_cut: bool,
    /// True if there are more fields than a chart has. They are missing; `field` selects one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub has_more_fields: bool,
    /// Files of history that could not be read, so that their uplinks are missing: at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable_files: Vec<String>,
    /// The fields, by path.
    pub series: Vec<ChartSeries>,
}

/// A field over time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChartSeries {
    /// Its path, such as `battery.volts`.
    pub field: String,
    /// The points, by time. There is none where there is no value.
    pub points: Vec<ChartPoint>,
}

/// The values of a field in a part of the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChartPoint {
    /// Where that part begins.
    pub time: Timestamp,
    /// The least value.
    pub min: f64,
    /// Sum divided by count.
    pub mean: f64,
    /// The greatest value.
    pub max: f64,
    /// Number of them.
    pub count: u64,
}
