//! The numeric fields of a device over time: as pictures, as tables, and as a file.

use std::time::Duration;

use api::rest::handler::Chart;
use askama::Template;
use axum::{
    extract::Query,
    http::header,
    response::{IntoResponse, Response},
};
use types::{DevId, Timestamp};

use crate::{
    Error, Result,
    chart::{HEIGHT, Plot, WIDTH, number},
    drafts::Fields,
    history::{parameters, time},
    site::{
        failure::{Failure, Problem, partly},
        page::{Frame, Page, Time},
        viewer::{InApplication, Sent},
    },
};

/// Number of points of a picture, and of a file.
const POINTS: usize = 120;
const FILE_POINTS: usize = 1000;
/// The span that is shown by default.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The spans that links offer.
const SPANS: [(&str, &str); 4] = [("1h", "Hour"), ("24h", "Day"), ("7d", "Week"), ("30d", "Month")];

#[derive(Template)]
#[template(path = "charts.html")]
pub(in crate::site) struct Charts {
    frame: Frame,
    app_id: String,
    tab: &'static str,
    dev_id: DevId,
    range: Range,
    plots: Vec<Plot>,
    examined: u64,
    is_cut: bool,
    /// Files that cannot be read.
    unreadable: Vec<String>,
    has_more_fields: bool,
    problem: Option<Problem>,
}

/// Period that is shown, as somebody wrote it and as it is.
#[derive(Clone, Debug)]
struct Range {
    since_text: String,
    until_text: String,
    field: String,
    since: Timestamp,
    until: Timestamp,
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

    fn time(&self, time: &Timestamp) -> Time {
        Time(time.as_nanos())
    }
}

impl Range {
    fn of(fields: Fields, now: Timestamp) -> Result<Self> {
        let sent = Sent(fields);
        let text = |name: &str| sent.value(name).trim().to_owned();
        let (mut since_text, until_text, field) = (text("since"), text("until"), text("field"));
        let until = time("until", &until_text, now)?.unwrap_or(now);
        if since_text.is_empty() && until_text.is_empty() {
            "24h".clone_into(&mut since_text);
        }
        let since = time("since", &since_text, now)?.unwrap_or_else(|| until.minus(DAY));
        if since >= until {
            return Err(Error::Invalid { what: "since", must: "must be before until".to_owned() });
        }
        Ok(Self { since_text, until_text, field, since, until })
    }

    /// The parameters of a link to the same part of the time.
    fn link(&self) -> String {
        self.linked(&self.since_text, &self.until_text, &self.field)
    }

    /// The parameters of a link to a span that ends now.
    fn of_span(&self, span: &str) -> String {
        self.linked(span, "", &self.field)
    }

    /// The parameters of a link to one field.
    fn of_field(&self, field: &str) -> String {
        self.linked(&self.since_text, &self.until_text, field)
    }

    fn all_fields(&self) -> String {
        self.of_field("")
    }

    /// The parameters of a link to as much time before this one.
    fn earlier(&self) -> String {
        self.exact(self.since.minus(self.length()), self.since)
    }

    /// The parameters of links to both halves.
    fn halves(&self) -> [String; 2] {
        let middle = self.until.minus(self.length() / 2);
        [self.exact(self.since, middle), self.exact(middle, self.until)]
    }

    fn exact(&self, since: Timestamp, until: Timestamp) -> String {
        self.linked(&since.to_rfc3339(), &until.to_rfc3339(), &self.field)
    }

    fn length(&self) -> Duration {
        let nanos = self.until.as_nanos().saturating_sub(self.since.as_nanos());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
    }

    fn linked(&self, since: &str, until: &str, field: &str) -> String {
        let pairs = [("since", since), ("until", until), ("field", field)];
        parameters(pairs.into_iter().filter(|(_, value)| !value.is_empty()))
    }
}

pub(in crate::site) async fn show(
    request: InApplication,
    Query(fields): Query<Fields>,
) -> Result<Page<Charts>, Failure> {
    let range = Range::of(fields, request.console.clock.now())?;
    let dev_id = dev_id(&request)?;
    let (chart, problem) = partly(read(&request, &dev_id, &range, POINTS).await)?;
    let facts = chart.as_ref().map(|chart| (chart.examined, chart.is_cut, chart.has_more_fields));
    let (examined, is_cut, has_more_fields) = facts.unwrap_or_default();
    let unreadable = chart.as_ref().map(|chart| chart.unreadable_files.clone()).unwrap_or_default();
    Ok(Page::new(Charts {
        frame: request.frame.clone(),
        app_id: request.app_id().to_string(),
        tab: "devices",
        dev_id,
        range,
        plots: chart.map(Plot::all).unwrap_or_default(),
        examined,
        is_cut,
        unreadable,
        has_more_fields,
        problem,
    }))
}

/// The points as a file, more of them than a picture has.
pub(in crate::site) async fn csv(request: InApplication, Query(fields): Query<Fields>) -> Result<Response, Failure> {
    let range = Range::of(fields, request.console.clock.now())?;
    let dev_id = dev_id(&request)?;
    let text = csv_text(&read(&request, &dev_id, &range, FILE_POINTS).await?);
    let disposition = format!("attachment; filename=\"{dev_id}.csv\"");
    let headers = [(header::CONTENT_TYPE, "text/csv; charset=utf-8"), (header::CACHE_CONTROL, "no-store")];
    let safe = [(header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((headers, safe, [(header::CONTENT_DISPOSITION, disposition)], text).into_response())
}

async fn read(request: &InApplication, dev_id: &DevId, range: &Range, points: usize) -> Result<Chart> {
    let client = request.console.charts(&request.access).await?.ok_or(Error::NotServed)?;
    let chart = client.chart(dev_id, range.since..range.until, &range.field, points).await;
    chart.map_err(|error| Error::hiding("device", error))
}

fn dev_id(request: &InApplication) -> Result<DevId> {
    request.parameter("dev_id").parse().map_err(|_| Error::NotFound("device"))
}

fn csv_text(chart: &Chart) -> String {
    let mut text = "time,field,min,mean,max,count\n".to_owned();
    for series in &chart.series {
        let field = quoted(&series.field);
        for point in &series.points {
            let (time, count) = (point.time.to_rfc3339(), point.count);
            let line = format!("{time},{field},{},{},{},{count}\n", point.min, point.mean, point.max);
            text.push_str(&line);
        }
    }
    text
}

/// A text as a cell. Spreadsheets would run one that begins like a formula.
fn quoted(text: &str) -> String {
    let plain = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{plain}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(pairs: &[(&str, &str)]) -> Result<Range> {
        let fields = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Range::of(fields, Timestamp::from_millis(200_000_000))
    }

    #[test]
    fn a_range_is_shown_earlier_and_in_halves() {
        let range = range(&[("since", "1970-01-03T00:00:00Z"), ("until", "1970-01-03T02:00:00Z")]).unwrap();
        assert!(range.earlier().contains("1970%2D01%2D02T22"), "{}", range.earlier());
        assert!(range.halves()[0].contains("T01%3A00"), "{:?}", range.halves());
    }

    #[test]
    fn ranges_that_cannot_be_are_refused() {
        assert_eq!(range(&[]).unwrap().length(), DAY);
        for pairs in [[("since", "x"), ("until", "")], [("since", "1h"), ("until", "2h")]] {
            assert!(range(&pairs).is_err(), "{pairs:?}");
        }
    }

    #[test]
    fn cells_are_no_formulas() {
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
