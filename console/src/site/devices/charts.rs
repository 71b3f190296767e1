//! The numeric fields of a device over time, or those of several in one picture: drawn, as tables, and as a file.

mod csv;
mod range;
mod read;

use std::collections::BTreeSet;

use api::rest::handler::Chart;
use askama::Template;
use axum::{extract::Query, response::Response};
use types::{DevId, Timestamp};

use self::{range::Range, read::read};
use crate::{
    Error, Result,
    chart::{DEVICES_MAX, HEIGHT, Plot, WIDTH, number},
    form::drafts::Fields,
    site::{
        failure::{Failure, Problem, partly},
        page::{Frame, Page, Time, csv_file, shown},
        viewer::InApplication,
    },
};

/// Number of points of a page, and of a file.
const PAGE: Points = Points { line: 120, all: 3840 };
const FILE: Points = Points { line: 1000, all: 16_000 };
/// Maximum number of fields on a page. The handler sends as many of each device.
const FIELDS_MAX: usize = 16;
/// The spans that links offer.
const SPANS: [(&str, &str); 4] = [("1h", "Hour"), ("24h", "Day"), ("7d", "Week"), ("30d", "Month")];

#[derive(Template)]
#[template(path = "charts.html")]
pub(in crate::site) struct Charts {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    /// The device that the path names.
    of_device: Option<DevId>,
    path: String,
    range: Range,
    devices: Vec<Source>,
    plots: Vec<Plot>,
    /// Maximum number of points of a line.
    points: usize,
    /// Files that cannot be read.
    unreadable: BTreeSet<String>,
    has_more_fields: bool,
    /// Reason why devices are missing.
    problem: Option<Problem>,
}

/// A device whose uplinks were read.
struct Source {
    dev_id: DevId,
    examined: u64,
    is_cut: bool,
    has_line: bool,
}

/// Maximum numbers of points.
#[derive(Clone, Copy)]
struct Points {
    /// Of a field of a device.
    line: usize,
    all: usize,
}

impl Points {
    /// The share of each line.
    fn share(self, range: &Range) -> usize {
        let fields = if range.field.is_empty() { FIELDS_MAX } else { 1 };
        self.line.min(self.all / (fields * range.devices.len().max(1)))
    }
}

impl Source {
    fn of((dev_id, chart): &(DevId, Chart)) -> Self {
        let Chart { examined, is_cut, series, .. } = chart;
        Self { dev_id: dev_id.clone(), examined: *examined, is_cut: *is_cut, has_line: !series.is_empty() }
    }
}

impl Charts {
    fn spans(&self) -> [(&'static str, &'static str, bool); 4] {
        let is_shown = |span: &str| self.range.until_text.is_empty() && self.range.since_text == span;
        SPANS.map(|(span, name)| (span, name, is_shown(span)))
    }

    fn size(&self) -> String {
        format!("0 0 {WIDTH} {HEIGHT}")
    }

    fn number(&self, value: &f64) -> String {
        number(*value)
    }

    /// A field as it may be shown: functions choose its name.
    fn name(&self, field: &str) -> String {
        shown(field)
    }

    fn time(&self, time: &Timestamp) -> Time {
        Time(time.as_nanos())
    }

    /// Returns true if devices have to be named, as the path does not.
    fn names_devices(&self) -> bool {
        self.of_device.is_none()
    }

    /// The name of the table with the values of a line.
    fn values_of(&self, field: &str, dev_id: &DevId) -> String {
        let of_device = if self.names_devices() { format!(" of {dev_id}") } else { String::new() };
        format!("Values of {}{of_device}", self.name(field))
    }

    fn has_several(&self) -> bool {
        self.range.devices.len() > 1
    }

    /// Number of uplinks of all devices.
    fn examined(&self) -> u64 {
        self.devices.iter().map(|device| device.examined).sum()
    }

    /// The devices whose uplinks could not be read.
    fn unread(&self) -> String {
        let is_read = |dev_id: &&DevId| self.devices.iter().any(|device| device.dev_id == **dev_id);
        ids(self.range.devices.iter().filter(|dev_id| !is_read(dev_id)))
    }

    fn left_out(&self) -> String {
        ids(&self.range.left_out)
    }

    fn devices_max(&self) -> usize {
        DEVICES_MAX
    }

    /// Number of devices, if they are too many for a chart.
    fn too_many(&self) -> usize {
        self.range.too_many.len()
    }

    /// Returns true if lines have more points when one field is chosen.
    fn is_coarse(&self) -> bool {
        self.points < PAGE.line
    }
}

pub(in crate::site) async fn show(
    request: InApplication,
    Query(fields): Query<Fields>,
) -> Result<Page<Charts>, Failure> {
    let (range, of_device) = asked(&request, fields)?;
    let mut charts = Vec::new();
    let points = PAGE.share(&range);
    let (_, problem) = partly(read(&request, &range, points, &mut charts).await)?;
    let devices = charts.iter().map(Source::of).collect();
    let unreadable = charts.iter().flat_map(|(_, chart)| chart.unreadable_files.clone()).collect();
    let has_more_fields = charts.iter().any(|(_, chart)| chart.has_more_fields);
    let mut plots = Plot::all(charts);
    let has_more_fields = has_more_fields || plots.len() > FIELDS_MAX;
    plots.truncate(FIELDS_MAX);
    let path = match &of_device {
        Some(dev_id) => format!("{}/devices/{dev_id}/charts", request.path()),
        None => format!("{}/charts", request.path()),
    };
    Ok(Page::new(Charts {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "devices",
        of_device,
        path,
        range,
        devices,
        plots,
        points,
        unreadable,
        has_more_fields,
        problem,
    }))
}

/// The points as a file, more of them than a picture has.
pub(in crate::site) async fn csv(request: InApplication, Query(fields): Query<Fields>) -> Result<Response, Failure> {
    let (range, of_device) = asked(&request, fields)?;
    let mut charts = Vec::new();
    let result = read(&request, &range, FILE.share(&range), &mut charts).await;
    if charts.is_empty() {
        // A file without any device would hide the reason.
        result?;
    } else {
        partly(result)?;
    }
    let of = of_device.as_ref().map_or_else(|| request.app_id().as_str(), DevId::as_str);
    Ok(csv_file(&csv::name(of, range.asked(), &charts), csv::text(&charts)))
}

/// The range of the request, and the device that its path names.
fn asked(request: &InApplication, fields: Fields) -> Result<(Range, Option<DevId>)> {
    let of_device = match request.parameter("dev_id") {
        "" => None,
        dev_id => Some(dev_id.parse::<DevId>().map_err(|_| Error::NotFound("device"))?),
    };
    Ok((Range::of(fields, of_device.clone(), request.console.clock.now())?, of_device))
}

/// Devices, for a sentence.
fn ids<'a>(devices: impl IntoIterator<Item = &'a DevId>) -> String {
    devices.into_iter().map(DevId::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(devices: usize, field: &str) -> Range {
        let devices = (0..devices).map(|at| ("device".to_owned(), format!("dev-{at}")));
        let fields = devices.chain([("field".to_owned(), field.to_owned())]).collect();
        Range::of(fields, None, Timestamp::from_millis(200_000_000)).unwrap()
    }

    #[test]
    fn lines_share_the_points_of_a_page() {
        for (devices, field, expected) in [(1, "", 120), (2, "", 120), (DEVICES_MAX, "", 30), (DEVICES_MAX, "t", 120)] {
            assert_eq!(PAGE.share(&range(devices, field)), expected, "{devices} {field}");
        }
        assert_eq!([FILE.share(&range(1, "")), FILE.share(&range(DEVICES_MAX, ""))], [1000, 125]);
    }

    fn chart(is_cut: bool) -> Chart {
        let range = range(0, "");
        Chart {
            since: range.since,
            until: range.until,
            bucket_seconds: 720.0,
            examined: 200_000,
            is_cut,
            has_more_fields: false,
            unreadable_files: Vec::new(),
            series: Vec::new(),
        }
    }

    #[test]
    fn a_page_names_the_devices_of_which_something_is_missing() {
        let charts: [(DevId, Chart); 2] =
            [("dev-0".parse().unwrap(), chart(false)), ("dev-2".parse().unwrap(), chart(true))];
        let page = Charts {
            frame: Frame::default(),
            app_id: "my-app".to_owned(),
            tab: "devices",
            of_device: None,
            path: "/console/applications/my-app/charts".to_owned(),
            range: range(3, "t "),
            devices: charts.iter().map(Source::of).collect(),
            plots: Vec::new(),
            points: 120,
            unreadable: BTreeSet::from(["<b>.parquet".to_owned()]),
            has_more_fields: false,
            problem: Some(Problem::new("Service unavailable", "It is away.".to_owned())),
        };
        let html = page.render().unwrap();
        for expected in [
            "too many uplinks of dev-2 for one chart",
            "None of the 200000 uplinks of dev-0 in this period has a number in the field “t ”.",
            "These devices are missing: dev-1.",
            "cannot read &#60;b&#62;.parquet",
        ] {
            assert!(html.contains(expected), "{expected}: {html}");
        }
        assert!(!html.contains("uplinks of dev-0 for one chart"), "it is not cut: {html}");
    }
}
