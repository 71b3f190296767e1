//! Charts as a file, which says so itself if something is missing.

use api::rest::handler::Chart;
use types::DevId;

/// The names of the columns. Those that came later are the last ones.
const HEADER: &str = "time,field,min,mean,max,count,device,missing\n";

/// A line for each point. In each, the last column says what the chart of its device lacks; nothing if it is whole.
pub(super) fn text(charts: &[(DevId, Chart)]) -> String {
    let mut text = HEADER.to_owned();
    for (dev_id, chart) in charts {
        let missing = missing(chart);
        for series in &chart.series {
            let field = quoted(&series.field);
            for point in &series.points {
                let (time, count) = (point.time.to_rfc3339(), point.count);
                let values = format!("{},{},{},{count}", point.min, point.mean, point.max);
                text.push_str(&format!("{time},{field},{values},{dev_id},{missing}\n"));
            }
        }
    }
    text
}

/// The name of the file. It says so, too, because a device of which everything is missing has no line. So many devices
/// were asked for.
pub(super) fn name(of: &str, asked: usize, charts: &[(DevId, Chart)]) -> String {
    let is_whole = charts.len() == asked && charts.iter().all(|(_, chart)| missing(chart).is_empty());
    if is_whole { format!("{of}.csv") } else { format!("{of}-incomplete.csv") }
}

/// The missing part of a chart, as a cell; empty if it is whole.
fn missing(chart: &Chart) -> String {
    let parts = [
        (chart.is_cut, "oldest uplinks"),
        (chart.has_more_fields, "more fields"),
        (!chart.unreadable_files.is_empty(), "uplinks in unreadable files"),
    ];
    let missing: Vec<_> = parts.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, part)| part).collect();
    missing.join("; ")
}

/// A text as a cell. Spreadsheets would run one that begins like a formula.
fn quoted(text: &str) -> String {
    let plain = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{plain}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use api::rest::handler::{ChartPoint, ChartSeries};
    use types::Timestamp;

    use super::*;

    fn chart(field: &str) -> Chart {
        let time = Timestamp::from_millis(0);
        let points = vec![ChartPoint { time, min: 1.0, mean: 1.5, max: 2.0, count: 2 }];
        Chart {
            since: time,
            until: Timestamp::from_millis(1000),
            bucket_seconds: 1.0,
            examined: 2,
            is_cut: false,
            has_more_fields: false,
            unreadable_files: Vec::new(),
            series: vec![ChartSeries { field: field.to_owned(), points }],
        }
    }

    #[test]
    fn every_line_says_what_its_device_lacks_and_so_does_the_name() {
        let cut = Chart { is_cut: true, unreadable_files: vec!["a.parquet".to_owned()], ..chart("t") };
        let charts: [(DevId, Chart); 2] = [("dev-1".parse().unwrap(), chart("t")), ("dev-2".parse().unwrap(), cut)];
        let text = text(&charts);
        let lines: Vec<_> = text.lines().skip(1).collect();
        let [whole, incomplete] = &lines[..] else { panic!("a line for each device: {text}") };
        assert_eq!(*whole, "1970-01-01T00:00:00Z,\"t\",1,1.5,2,2,dev-1,");
        assert!(incomplete.ends_with(",dev-2,oldest uplinks; uplinks in unreadable files"), "{incomplete}");
        assert_eq!([name("a", 1, &charts[..1]), name("a", 2, &charts)], ["a.csv", "a-incomplete.csv"]);
        assert_eq!(name("a", 2, &charts[..1]), "a-incomplete.csv", "a device is missing");
        let nothing = Chart { has_more_fields: true, series: Vec::new(), ..chart("t") };
        assert_eq!(name("a", 1, &[("dev-1".parse().unwrap(), nothing)]), "a-incomplete.csv");
    }

    #[test]
    fn cells_are_no_formulas() {
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        let columns = |line: &str| line.matches(',').count();
        let text = text(&[("dev-1".parse().unwrap(), chart("=1"))]);
        let lines: Vec<_> = text.lines().map(columns).collect();
        assert_eq!(lines, [7, 7], "each line has all columns: {text}");
    }
}
