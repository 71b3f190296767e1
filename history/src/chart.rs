//! Charts: the numeric fields of a device over time, put together where the records are, so that millions of uplinks
//! become so many points.

pub(crate) mod batch;
pub(crate) mod collector;
pub(crate) mod corrections;
mod numbers;
pub(crate) mod overlaps;
mod uplinks;

use types::{AppId, DevId, Timestamp};

use crate::{Kind, Query, RecordId, Revisions, Skipped, query::CLOCKS_APART_MAX};

/// Maximum number of points of a field.
pub const CHART_POINTS_MAX: usize = 1000;
/// Bytes of corrections that are read at once.
const CORRECTIONS_TOGETHER_BYTES: usize = 4 << 20;

/// Device, time and fields of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartQuery {
    /// The application.
    pub app_id: AppId,
    /// The device.
    pub dev_id: DevId,
    /// Recorded at this time or later.
    pub since: Timestamp,
    /// Recorded before this time.
    pub until: Timestamp,
    /// The path of the only field, such as `battery.volts`; all numeric ones if there is none.
    pub field: Option<String>,
    /// Maximum number of points of each field, at most [`CHART_POINTS_MAX`].
    pub points: usize,
}

/// Numeric fields of the uplinks of a device over time, each uplink as it was decoded last.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The time that a point stands for, in nanoseconds.
    pub point_ns: i64,
    /// Number of uplinks.
    pub examined: usize,
    /// True if the oldest uplinks are missing, because there are too many.
    pub is_cut: bool,
    /// True if there are more fields than a chart has.
    pub has_more_fields: bool,
    /// The fields, by path.
    pub fields: Vec<ChartField>,
    /// Files that could not be read.
    pub skipped: Vec<Skipped>,
}

/// A field over time.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartField {
    /// Its path, such as `battery.volts`.
    pub path: String,
    /// The points, by time. There is none where there is no value.
    pub points: Vec<ChartPoint>,
}

/// The values of a field in a part of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChartPoint {
    /// The time when that part begins.
    pub time: Timestamp,
    /// The least value.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The greatest value.
    pub max: f64,
    /// Number of values.
    pub count: u64,
}

impl ChartQuery {
    /// The uplinks, as they were decoded first.
    pub(crate) fn originals(&self) -> Query {
        Query {
            dev_id: Some(self.dev_id.clone()),
            since: Some(self.since),
            until: Some(self.until),
            kind: Some(Kind::Uplink),
            revisions: Revisions::Originals,
            ..Query::of(self.app_id.clone())
        }
    }

    /// Corrections of uplinks with ids from `first` to `last`.
    pub(crate) fn corrections(&self, first: RecordId, last: RecordId) -> Query {
        Query {
            dev_id: Some(self.dev_id.clone()),
            // They came later, if perhaps by the clock of another handler: older files need not be opened.
            since: Some(self.since.minus(CLOCKS_APART_MAX)),
            revisions: Revisions::CorrectionsOf(first..=last),
            bytes_max: CORRECTIONS_TOGETHER_BYTES,
            ..Query::of(self.app_id.clone())
        }
    }
}
