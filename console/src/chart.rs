//! Charts as shapes: where the line and the band of a field are drawn, in a picture that any width stretches.

use api::rest::handler::{Chart, ChartPoint, ChartSeries};
use types::Timestamp;

/// The size of a picture, in units of its own.
pub(crate) const WIDTH: f64 = 1000.0;
pub(crate) const HEIGHT: f64 = 200.0;
/// Margin above and below the line, in the units of the picture.
const EDGE: f64 = 8.0;
/// Up to so many points are drawn as dots, too.
const DOTS_MAX: usize = 60;
/// A line ends where values are missing for so many times the usual distance.
const GAP: i64 = 5;

/// A field over time, as it is drawn.
pub(crate) struct Plot {
    pub(crate) field: String,
    pub(crate) points: Vec<ChartPoint>,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Of all values, not of the points.
    pub(crate) mean: f64,
    /// Number of values.
    pub(crate) count: u64,
    /// Paths through the means.
    pub(crate) line: String,
    /// Paths around what lies between the least and the greatest values.
    pub(crate) band: String,
    /// Paths without a length, which are drawn as dots.
    pub(crate) dots: String,
}

/// Mapping of times and values to places in the picture.
struct Scale {
    since: i64,
    until: i64,
    /// Half of the width of a bucket, in nanoseconds: a point is in the middle.
    middle: i64,
    low: f64,
    high: f64,
}

impl Plot {
    pub(crate) fn all(chart: Chart) -> Vec<Self> {
        let (since, until, bucket) = (chart.since, chart.until, chart.bucket_seconds);
        chart.series.into_iter().map(|series| Self::new(series, (since, until), bucket)).collect()
    }

    fn new(series: ChartSeries, (since, until): (Timestamp, Timestamp), bucket_seconds: f64) -> Self {
        let ChartSeries { field, points } = series;
        let min = points.iter().map(|point| point.min).fold(f64::INFINITY, f64::min);
        let max = points.iter().map(|point| point.max).fold(f64::NEG_INFINITY, f64::max);
        let count: u64 = points.iter().map(|point| point.count).sum();
        let mean = points.iter().map(|point| point.mean * (point.count as f64 / count.max(1) as f64)).sum();
        let middle = (bucket_seconds * 5e8) as i64;
        let scale = Scale { since: since.as_nanos(), until: until.as_nanos(), middle, low: min, high: max };
        let runs = runs(&points);
        let dots = if points.len() <= DOTS_MAX { scale.dots(&points) } else { lonely(&scale, &runs) };
        let line = runs.iter().map(|run| scale.line(run)).collect();
        let band = runs.iter().map(|run| scale.band(run)).collect();
        Self { field, min, max, mean, count, line, band, dots, points }
    }
}

impl Scale {
    fn x(&self, point: &ChartPoint) -> f64 {
        let span = (self.until - self.since).max(1) as f64;
        let at = point.time.as_nanos().saturating_add(self.middle).saturating_sub(self.since);
        (at as f64 / span * WIDTH).clamp(0.0, WIDTH)
    }

    fn y(&self, value: f64) -> f64 {
        // Halves, because the difference of large numbers may be infinite.
        let (low, span) = (self.low / 2.0, self.high / 2.0 - self.low / 2.0);
        let part = if span > 0.0 { (value / 2.0 - low) / span } else { 0.5 };
        HEIGHT - EDGE - part.clamp(0.0, 1.0) * (HEIGHT - 2.0 * EDGE)
    }

    fn line(&self, run: &[ChartPoint]) -> String {
        path(run.iter().map(|point| (self.x(point), self.y(point.mean))))
    }

    fn band(&self, run: &[ChartPoint]) -> String {
        let above = run.iter().map(|point| (self.x(point), self.y(point.max)));
        let below = run.iter().rev().map(|point| (self.x(point), self.y(point.min)));
        format!("{}Z", path(above.chain(below)))
    }

    fn dots(&self, points: &[ChartPoint]) -> String {
        points.iter().map(|point| format!("M{:.1} {:.1}h0", self.x(point), self.y(point.mean))).collect()
    }
}

/// Points that belong together, because no values are missing between them.
fn runs(points: &[ChartPoint]) -> Vec<&[ChartPoint]> {
    let gap = |from: &ChartPoint, to: &ChartPoint| to.time.as_nanos().saturating_sub(from.time.as_nanos());
    let mut gaps: Vec<_> = points.windows(2).filter_map(|pair| Some(gap(pair.first()?, pair.last()?))).collect();
    gaps.sort_unstable();
    let usual = gaps.get(gaps.len() / 2).copied().unwrap_or_default();
    points.chunk_by(|from, to| gap(from, to) <= usual.saturating_mul(GAP)).collect()
}

/// Points that are on no line.
fn lonely(scale: &Scale, runs: &[&[ChartPoint]]) -> String {
    runs.iter().filter(|run| run.len() == 1).map(|run| scale.dots(run)).collect()
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let step = |(index, (x, y)): (usize, (f64, f64))| format!("{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
    points.enumerate().map(step).collect()
}

/// A number for people.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1e12 || (size > 0.0 && size < 1e-3) {
        format!("{value:.3e}")
    } else {
        format!("{}", (value * 1e3).round() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(values: &[(i64, f64)]) -> Plot {
        let point = |(second, value): &(i64, f64)| ChartPoint {
            time: Timestamp::from_millis(second * 1000),
            min: *value,
            mean: *value,
            max: *value,
            count: 1,
        };
        let series = ChartSeries { field: "t".to_owned(), points: values.iter().map(point).collect() };
        Plot::new(series, (Timestamp::from_millis(0), Timestamp::from_millis(100_000)), 0.0)
    }

    #[test]
    fn the_line_goes_from_the_least_to_the_greatest_value() {
        let plot = plot(&[(0, 1.0), (50, 3.0), (100, 2.0)]);
        assert_eq!(plot.line, "M0.0 192.0L500.0 8.0L1000.0 100.0");
        assert_eq!((plot.min, plot.max, plot.mean.round(), plot.count), (1.0, 3.0, 2.0, 3));
    }

    #[test]
    fn a_line_ends_where_values_are_missing() {
        let plot = plot(&[(0, 1.0), (1, 1.0), (2, 1.0), (90, 1.0)]);
        assert_eq!(plot.line.matches('M').count(), 2, "{}", plot.line);
        assert!(plot.line.contains("100.0"), "a flat line is in the middle");
    }

    #[test]
    fn any_number_has_a_place() {
        let plot = plot(&[(0, f64::MAX), (50, f64::MIN), (60, 0.0)]);
        assert!(!plot.line.contains("NaN") && !plot.line.contains("inf"), "{}", plot.line);
        assert_eq!(number(f64::MAX), "1.798e308");
        assert_eq!(
            (number(0.1 + 0.2).as_str(), number(-5.0).as_str(), number(1e-7).as_str()),
            ("0.3", "-5", "1.000e-7")
        );
    }
}
