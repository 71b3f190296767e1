//! Charts on the wire.

use std::time::Duration;

use api::{history as message, rest::handler as body};
use history::{CHART_POINTS_MAX, ChartQuery};
use schemars::JsonSchema;
use serde::Deserialize;
use types::{AppId, Timestamp};

use crate::Error;

/// Default number of points of a chart.
const POINTS: usize = 200;
/// Default time span of a chart.
const SPAN: Duration = Duration::from_secs(24 * 3600);

/// Parameters of a chart, as they were sent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct SentChart {
    /// The device.
    pub(crate) dev_id: String,
    /// Where it begins; a day before its end if it is omitted.
    pub(crate) since: Option<Timestamp>,
    /// Where it ends; now if it is omitted.
    pub(crate) until: Option<Timestamp>,
    /// The path of the only field, such as `battery.volts`; up to 16 numeric ones if it is omitted.
    pub(crate) field: String,
    /// Maximum number of points of each field: 1000, or 200 if it is omitted or 0.
    pub(crate) points: usize,
}

impl SentChart {
    pub(crate) fn into_query(self, app_id: AppId, now: Timestamp) -> Result<ChartQuery, Error> {
        let Self { dev_id, since, until, field, points } = self;
        let until = until.unwrap_or(now);
        let since = since.unwrap_or_else(|| until.minus(SPAN));
        if since >= until {
            return Err(Error::invalid("Since", "it must be before `until`"));
        }
        if points > CHART_POINTS_MAX {
            return Err(Error::invalid("Points", format_args!("there must be at most {CHART_POINTS_MAX}")));
        }
        let points = if points == 0 { POINTS } else { points };
        let field = Some(field).filter(|field| !field.is_empty());
        Ok(ChartQuery { app_id, dev_id: dev_id.parse()?, since, until, field, points })
    }
}

impl From<message::ChartQuery> for SentChart {
    fn from(query: message::ChartQuery) -> Self {
        let message::ChartQuery { dev_id, since, until, field, points, .. } = query;
        let (since, until) = (since.map(Timestamp::from_nanos), until.map(Timestamp::from_nanos));
        Self { dev_id, since, until, field, points: points as usize }
    }
}

/// A chart as a message.
pub(crate) fn chart_message(chart: body::Chart) -> message::Chart {
    message::Chart {
        since: chart.since.as_nanos(),
        until: chart.until.as_nanos(),
        bucket_seconds: chart.bucket_seconds,
        examined: chart.examined,
        is_cut: chart.is_cut,
        has_more_fields: chart.has_more_fields,
        unreadable_files: chart.unreadable_files,
        series: chart.series.into_iter().map(series_message).collect(),
    }
}

fn series_message(body::ChartSeries { field, points }: body::ChartSeries) -> message::ChartSeries {
    let point = |body::ChartPoint { time, min, mean, max, count }| message::ChartPoint {
        time: time.as_nanos(),
        min,
        mean,
        max,
        count,
    };
    message::ChartSeries { field, points: points.into_iter().map(point).collect() }
}
