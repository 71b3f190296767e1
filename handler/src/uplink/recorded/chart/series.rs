//! Values of fields, put together by time.

use std::collections::BTreeMap;

use api::rest::handler::{Chart, ChartPoint, ChartSeries};
use types::Timestamp;

use super::{ChartQuery, numbers::numbers};

/// Maximum number of fields in a chart.
const SERIES_MAX: usize = 16;

/// Puts values together: each bucket of time becomes one point.
pub(super) struct Collector {
    since: i64,
    until: i64,
    /// In nanoseconds, at least one.
    width: i64,
    only: Option<String>,
    series: BTreeMap<String, BTreeMap<i64, Bucket>>,
    has_more: bool,
}

/// The values of one field in one bucket.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    min: f64,
    max: f64,
    mean: f64,
    count: u64,
}

impl Bucket {
    fn of(value: f64) -> Self {
        Self { min: value, max: value, mean: value, count: 1 }
    }

    fn add(&mut self, value: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.count += 1;
        // Unlike a sum, this cannot become infinite. Each part is divided, because even a difference could.
        let count = self.count as f64;
        self.mean += value / count - self.mean / count;
    }
}

impl Collector {
    pub(super) fn new(query: &ChartQuery) -> Self {
        let (since, until) = (query.since.as_nanos(), query.until.as_nanos());
        let points = i64::try_from(query.points.max(1)).unwrap_or(i64::MAX);
        let width = until.saturating_sub(since).saturating_add(points - 1) / points;
        let (only, series) = (query.field.clone(), BTreeMap::new());
        Self { since, until, width: width.max(1), only, series, has_more: false }
    }

    /// Adds the numbers of an uplink.
    pub(super) fn add(&mut self, time: Timestamp, fields: &str) {
        let time = time.as_nanos();
        if !(self.since..self.until).contains(&time) {
            return;
        }
        let bucket = time.saturating_sub(self.since) / self.width;
        for (field, value) in numbers(fields) {
            if self.only.as_ref().is_none_or(|only| *only == field) {
                self.add_value(field, bucket, value);
            }
        }
    }

    fn add_value(&mut self, field: String, bucket: i64, value: f64) {
        if !self.series.contains_key(&field) && self.series.len() >= SERIES_MAX {
            self.has_more = true;
            return;
        }
        let points = self.series.entry(field).or_default();
        points.entry(bucket).and_modify(|bucket| bucket.add(value)).or_insert_with(|| Bucket::of(value));
    }

    /// Returns the chart. The caller fills in `examined` and `is_cut`.
    pub(super) fn finish(self, query: &ChartQuery) -> Chart {
        let Self { since, width, series, has_more, .. } = self;
        let point = |(bucket, Bucket { min, max, mean, count }): (i64, Bucket)| ChartPoint {
            time: Timestamp::from_nanos(since.saturating_add(bucket.saturating_mul(width))),
            min,
            max,
            mean,
            count,
        };
        let series = series
            .into_iter()
            .map(|(field, points)| ChartSeries { field, points: points.into_iter().map(point).collect() });
        Chart {
            since: query.since,
            until: query.until,
            bucket_seconds: width as f64 / 1e9,
            examined: 0,
            is_cut: false,
            has_more_fields: has_more,
            unreadable_files: Vec::new(),
            series: series.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(points: usize, field: Option<&str>) -> ChartQuery {
        ChartQuery {
            app_id: "my-app".parse().unwrap(),
            dev_id: "dev-1".parse().unwrap(),
            since: Timestamp::from_millis(100_000),
            until: Timestamp::from_millis(200_000),
            field: field.map(str::to_owned),
            points,
        }
    }

    fn chart(query: &ChartQuery, values: &[(i64, &str)]) -> Chart {
        let mut collector = Collector::new(query);
        for (second, fields) in values {
            collector.add(Timestamp::from_millis(second * 1000), fields);
        }
        collector.finish(query)
    }

    #[test]
    fn values_of_a_bucket_become_one_point() {
        let values = [(100, r#"{"t": 1}"#), (104, r#"{"t": 4}"#), (109, r#"{"t": 1}"#), (110, r#"{"t": 7}"#)];
        let chart = chart(&query(10, None), &values);
        assert_eq!(chart.bucket_seconds, 10.0);
        let points: Vec<_> = chart.series[0]
            .points
            .iter()
            .map(|point| (point.min, point.mean.round(), point.max, point.count))
            .collect();
        assert_eq!(points, [(1.0, 2.0, 4.0, 3), (7.0, 7.0, 7.0, 1)]);
        assert_eq!(chart.series[0].points[1].time, Timestamp::from_millis(110_000));
    }

    #[test]
    fn what_is_out_of_time_and_other_fields_are_left_out() {
        let values = [(99, r#"{"t": 1}"#), (200, r#"{"t": 1}"#), (150, r#"{"t": 2, "u": 3}"#)];
        let chart = chart(&query(1, Some("u")), &values);
        let fields: Vec<_> = chart.series.iter().map(|series| (series.field.as_str(), series.points.len())).collect();
        assert_eq!(fields, [("u", 1)]);
        assert!(!chart.has_more_fields);
    }

    #[test]
    fn there_are_so_many_fields_and_points_and_no_more() {
        let fields = (0..40).map(|number| format!(r#""f{number}": 1"#)).collect::<Vec<_>>().join(",");
        let fields = format!("{{{fields}}}");
        let values: Vec<_> = (100..200).map(|second| (second, fields.as_str())).collect();
        let chart = chart(&query(7, None), &values);
        assert_eq!((chart.series.len(), chart.has_more_fields), (SERIES_MAX, true));
        assert!(chart.series.iter().all(|series| series.points.len() == 7));
    }

    #[test]
    fn the_mean_of_large_numbers_is_finite() {
        let values = [(100, r#"{"t": 1.7e308}"#), (101, r#"{"t": -1.7e308}"#), (102, r#"{"t": 1.7e308}"#)];
        let chart = chart(&query(1, None), &values);
        assert!(chart.series[0].points[0].mean.is_finite());
    }
}
