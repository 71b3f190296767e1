//! The numeric fields of a device over time, as so many points as a chart has. History puts them together.

use api::rest::handler as body;
use history::{Chart, ChartField, ChartPoint, ChartQuery, History};
use server::usage::Usage;

use crate::{Error, uplink::stored::UnreadableFiles};

/// The cost of an uplink in a chart: history reads few of its columns, and makes no record of it.
const UPLINK_FUEL: u64 = 5000;

/// Reads a chart, and charges its uplinks to `usage`.
pub(crate) async fn chart(history: &History, query: ChartQuery, usage: &Usage) -> Result<body::Chart, Error> {
    let (since, until) = (query.since, query.until);
    let Chart { point_ns, examined, is_cut, has_more_fields, fields, skipped } = history.chart(query).await?;
    let examined = examined as u64;
    usage.add_fuel(examined.saturating_mul(UPLINK_FUEL));
    let mut unreadable = UnreadableFiles::default();
    unreadable.add(&skipped);
    Ok(body::Chart {
        since,
        until,
        bucket_seconds: point_ns as f64 / 1e9,
        examined,
        is_cut,
        has_more_fields,
        unreadable_files: unreadable.take_new(),
        series: fields.into_iter().map(series).collect(),
    })
}

fn series(ChartField { path, points }: ChartField) -> body::ChartSeries {
    let point = |ChartPoint { time, min, mean, max, count }| body::ChartPoint { time, min, mean, max, count };
    body::ChartSeries { field: path, points: points.into_iter().map(point).collect() }
}
