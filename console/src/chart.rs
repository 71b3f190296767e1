//! Charts as shapes: where the lines and bands of a field are drawn, in a picture that any width stretches.

use std::collections::BTreeMap;

use api::rest::handler::{Chart, ChartPoint, ChartSeries};
use types::DevId;

/// The size of a picture, in units of its own.
pub(crate) const WIDTH: f64 = 1000.0;
pub(crate) const HEIGHT: f64 = 200.0;
/// Maximum number of devices in a chart.
pub(crate) const DEVICES_MAX: usize = DASHES.len();
/// Appearance of the line of each device, in words, because not everybody tells the colours apart. The style sheet has
/// both, as `--line-1` and `.line-1`, and so on.
const DASHES: [&str; 8] = [
    "solid line",
    "dashed line",
    "dotted line",
    "dash-dot line",
    "long-dashed line",
    "dash-dot-dot line",
    "sparsely dotted line",
    "long-and-short-dashed line",
];
/// Margin above and below the line, in the units of the picture.
const EDGE: f64 = 8.0;
/// Up to so many points are drawn as dots, too.
const DOTS_MAX: usize = 60;
/// A line ends where values are missing for so many times the usual distance.
const GAP: i64 = 5;

/// A field over time, as it is drawn.
pub(crate) struct Plot {
    pub(crate) field: String,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Those of the devices that have the field, in the order of the devices.
    pub(crate) lines: Vec<Line>,
    /// Devices that have other fields only.
    pub(crate) without: Vec<DevId>,
}

/// A field of a device.
pub(crate) struct Line {
    pub(crate) dev_id: DevId,
    /// Number of the colour and the dash in the style sheet.
    pub(crate) style: usize,
    /// The dash, in words.
    pub(crate) dash: &'static str,
    pub(crate) points: Vec<ChartPoint>,
    /// Of all values, not of the points.
    mean: f64,
    /// Number of values.
    count: u64,
    /// Paths through the means.
    pub(crate) line: String,
    /// Paths around what lies between the least and the greatest values.
    pub(crate) band: String,
    /// Paths without a length, which are drawn as dots.
    pub(crate) dots: String,
}

/// The points of a device before they have a place.
struct Values {
    /// Position of the device among all of them.
    index: usize,
    dev_id: DevId,
    span: Span,
    points: Vec<ChartPoint>,
}

/// Time of a picture, in nanoseconds.
#[derive(Clone, Copy)]
struct Span {
    since: i64,
    until: i64,
    /// Half of the width of a bucket: a point is in the middle.
    middle: i64,
}

/// Mapping of times and values to places in the picture.
struct Scale {
    span: Span,
    low: f64,
    high: f64,
}

impl Plot {
    /// A plot of each field, by path, with the lines of all devices that have it.
    pub(crate) fn all(charts: Vec<(DevId, Chart)>) -> Vec<Self> {
        let with_fields = charts.iter().filter(|(_, chart)| !chart.series.is_empty());
        let devices: Vec<_> = with_fields.map(|(dev_id, _)| dev_id.clone()).collect();
        let mut fields: BTreeMap<String, Vec<Values>> = BTreeMap::new();
        for (index, (dev_id, chart)) in charts.into_iter().enumerate() {
            let span = Span::of(&chart);
            for ChartSeries { field, points } in chart.series {
                fields.entry(field).or_default().push(Values { index, dev_id: dev_id.clone(), span, points });
            }
        }
        fields.into_iter().map(|(field, values)| Self::new(field, values, &devices)).collect()
    }

    fn new(field: String, values: Vec<Values>, devices: &[DevId]) -> Self {
        let points = || values.iter().flat_map(|values| &values.points);
        let min = points().map(|point| point.min).fold(f64::INFINITY, f64::min);
        let max = points().map(|point| point.max).fold(f64::NEG_INFINITY, f64::max);
        let lines: Vec<_> = values.into_iter().map(|values| Line::new(values, (min, max))).collect();
        let has_line = |dev_id: &DevId| lines.iter().any(|line| line.dev_id == *dev_id);
        let without = devices.iter().filter(|dev_id| !has_line(dev_id)).cloned().collect();
        Self { field, min, max, lines, without }
    }
}

impl Line {
    fn new(values: Values, (low, high): (f64, f64)) -> Self {
        let Values { index, dev_id, span, points } = values;
        let count: u64 = points.iter().map(|point| point.count).sum();
        let mean = points.iter().map(|point| point.mean * (point.count as f64 / count.max(1) as f64)).sum();
        let scale = Scale { span, low, high };
        let runs = runs(&points);
        let dots = if points.len() <= DOTS_MAX { scale.dots(&points) } else { lonely(&scale, &runs) };
        let line = runs.iter().map(|run| scale.line(run)).collect();
        let band = runs.iter().map(|run| scale.band(run)).collect();
        let dash = DASHES.get(index).copied().unwrap_or_default();
        Self { dev_id, style: index + 1, dash, mean, count, line, band, dots, points }
    }

    /// The values in words.
    pub(crate) fn summary(&self) -> String {
        let noun = if self.count == 1 { "value" } else { "values" };
        format!("mean {}, {} {noun}", number(self.mean), self.count)
    }
}

impl Span {
    fn of(chart: &Chart) -> Self {
        let middle = (chart.bucket_seconds * 5e8) as i64;
        Self { since: chart.since.as_nanos(), until: chart.until.as_nanos(), middle }
    }
}

impl Scale {
    fn x(&self, point: &ChartPoint) -> f64 {
        let Span { since, until, middle } = self.span;
        let at = point.time.as_nanos().saturating_add(middle).saturating_sub(since);
        (at as f64 / (until - since).max(1) as f64 * WIDTH).clamp(0.0, WIDTH)
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
        if let [point] = run {
            return self.bar(point);
        }
        let above = run.iter().map(|point| (self.x(point), self.y(point.max)));
        let below = run.iter().rev().map(|point| (self.x(point), self.y(point.min)));
        format!("{}Z", path(above.chain(below)))
    }

    /// The band of a point that is alone, as wide as its interval.
    fn bar(&self, point: &ChartPoint) -> String {
        let Span { since, until, middle } = self.span;
        let (half, x) = (middle as f64 / (until - since).max(1) as f64 * WIDTH, self.x(point));
        let (left, right) = ((x - half).max(0.0), (x + half).min(WIDTH));
        let (above, below) = (self.y(point.max), self.y(point.min));
        format!("{}Z", path([(left, above), (right, above), (right, below), (left, below)].into_iter()))
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
    use std::collections::BTreeSet;

    use types::Timestamp;

    use super::*;

    fn chart(fields: &[(&str, &[(i64, f64)])]) -> Chart {
        let point = |(second, value): &(i64, f64)| ChartPoint {
            time: Timestamp::from_millis(second * 1000),
            min: *value,
            mean: *value,
            max: *value,
            count: 1,
        };
        let series = fields.iter().map(|(field, values)| ChartSeries {
            field: (*field).to_owned(),
            points: values.iter().map(point).collect(),
        });
        Chart {
            since: Timestamp::from_millis(0),
            until: Timestamp::from_millis(100_000),
            bucket_seconds: 0.0,
            examined: 0,
            is_cut: false,
            has_more_fields: false,
            unreadable_files: Vec::new(),
            series: series.collect(),
        }
    }

    fn device(number: usize) -> DevId {
        format!("dev-{number}").parse().unwrap()
    }

    fn plot(values: &[(i64, f64)]) -> Plot {
        Plot::all(vec![(device(1), chart(&[("t", values)]))]).remove(0)
    }

    #[test]
    fn the_line_goes_from_the_least_to_the_greatest_value() {
        let plot = plot(&[(0, 1.0), (50, 3.0), (100, 2.0)]);
        let line = &plot.lines[0];
        assert_eq!(line.line, "M0.0 192.0L500.0 8.0L1000.0 100.0");
        assert_eq!((plot.min, plot.max, line.summary().as_str()), (1.0, 3.0, "mean 2, 3 values"));
    }

    #[test]
    fn a_line_ends_where_values_are_missing() {
        let plot = plot(&[(0, 1.0), (1, 1.0), (2, 1.0), (90, 1.0)]);
        let line = &plot.lines[0].line;
        assert_eq!(line.matches('M').count(), 2, "{line}");
        assert!(line.contains("100.0"), "a flat line is in the middle");
    }

    #[test]
    fn a_point_that_is_alone_has_a_band_as_wide_as_its_interval() {
        let mut alone = chart(&[("t", &[(50, 2.0)])]);
        alone.bucket_seconds = 10.0;
        let point = &mut alone.series[0].points[0];
        (point.min, point.max) = (1.0, 3.0);
        let plots = Plot::all(vec![(device(1), alone)]);
        assert_eq!(plots[0].lines[0].band, "M500.0 8.0L600.0 8.0L600.0 192.0L500.0 192.0Z");
    }

    #[test]
    fn devices_share_a_scale_and_each_has_a_line_of_its_own() {
        let charts = [
            chart(&[("t", &[(0, 1.0), (100, 1.0)])]),
            chart(&[]),
            chart(&[("t", &[(0, 3.0), (100, 3.0)]), ("u", &[(50, 7.0)])]),
        ];
        let plots = Plot::all(charts.into_iter().enumerate().map(|(at, chart)| (device(at), chart)).collect());
        let [t, u] = &plots[..] else { panic!("there are two fields") };
        assert_eq!((t.field.as_str(), t.min, t.max, t.without.len()), ("t", 1.0, 3.0, 0));
        let lines: Vec<_> = t.lines.iter().map(|line| (line.style, line.line.as_str())).collect();
        assert_eq!(lines, [(1, "M0.0 192.0L1000.0 192.0"), (3, "M0.0 8.0L1000.0 8.0")]);
        assert_eq!(u.without, [device(0)], "a device without any field is named elsewhere");
        assert_eq!((u.lines[0].style, u.lines[0].dash), (3, t.lines[1].dash), "it looks the same in each plot");
    }

    #[test]
    fn no_two_lines_look_alike() {
        let charts = (0..DEVICES_MAX).map(|at| (device(at), chart(&[("t", &[(0, at as f64)])]))).collect();
        let plots = Plot::all(charts);
        let dashes: BTreeSet<_> = plots[0].lines.iter().map(|line| line.dash).collect();
        assert!(dashes.len() == DEVICES_MAX && !dashes.contains(""), "{dashes:?}");
        let style = include_str!("../../web/site.css");
        for line in &plots[0].lines {
            let (colour, dash) = (format!("--line-{}:", line.style), format!(".line-{} {{", line.style));
            assert_eq!(style.matches(&colour).count(), 2, "{colour} is there in light and dark mode");
            assert_eq!(style.matches(&dash).count(), 1, "{dash}");
        }
    }

    #[test]
    fn any_number_has_a_place() {
        let plot = plot(&[(0, f64::MAX), (50, f64::MIN), (60, 0.0)]);
        let line = &plot.lines[0].line;
        assert!(!line.contains("NaN") && !line.contains("inf"), "{line}");
        assert_eq!(number(f64::MAX), "1.798e308");
        assert_eq!(
            (number(0.1 + 0.2).as_str(), number(-5.0).as_str(), number(1e-7).as_str()),
            ("0.3", "-5", "1.000e-7")
        );
    }
}
