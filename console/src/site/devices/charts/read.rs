//! Charts of several devices, as far as they can be read.

use std::{pin::pin, time::Duration};

use api::rest::handler::Chart;
use client::history::ChartClient;
use futures::{Stream, StreamExt, stream};
use tokio::time::{Instant, timeout_at};
use types::{DevId, Kind, Kinded};

use super::range::Range;
use crate::{Error, Result, site::viewer::InApplication};

/// Maximum time for all charts of a page or a file.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Reads one chart after the other: the handler would make them wait for each other, while their time runs. What could
/// be read is there also if there is an error, which is the first one.
pub(super) async fn read(
    request: &InApplication,
    range: &Range,
    points: usize,
    charts: &mut Vec<(DevId, Chart)>,
) -> Result<()> {
    let until = Instant::now() + TIME_MAX;
    let client = request.console.charts(&request.access).await?.ok_or(Error::NotServed)?;
    let read = stream::iter(range.devices.clone()).then(|dev_id| chart(&client, range, points, dev_id));
    keep(read, until, charts).await
}

async fn chart(client: &ChartClient, range: &Range, points: usize, dev_id: DevId) -> (DevId, Result<Chart>) {
    let chart = client.chart(&dev_id, range.since..range.until, &range.field, points).await;
    (dev_id, chart.map_err(|error| Error::hiding("device", error)))
}

/// Keeps charts, and goes on after an error unless it would be the same for every device.
async fn keep(
    read: impl Stream<Item = (DevId, Result<Chart>)>,
    until: Instant,
    charts: &mut Vec<(DevId, Chart)>,
) -> Result<()> {
    let mut read = pin!(read);
    let mut first = Ok(());
    loop {
        match timeout_at(until, read.next()).await {
            Ok(Some((dev_id, Ok(chart)))) => charts.push((dev_id, chart)),
            Ok(Some((_, Err(error)))) if matches!(error.kind(), Kind::NotFound | Kind::Unauthenticated) => {
                return Err(error);
            }
            Ok(Some((_, Err(error)))) => first = first.and(Err(error)),
            Ok(None) => return first,
            Err(_) => return first.and(Err(Error::SlowCharts(TIME_MAX.as_secs()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use types::Timestamp;

    use super::*;

    fn chart() -> Chart {
        Chart {
            since: Timestamp::from_millis(0),
            until: Timestamp::from_millis(1000),
            bucket_seconds: 1.0,
            examined: 1,
            is_cut: false,
            has_more_fields: false,
            unreadable_files: Vec::new(),
            series: Vec::new(),
        }
    }

    fn refused(kind: Kind) -> Result<Chart> {
        Err(client::Error::Refused { kind, message: format!("{kind:?}"), retry_after: None }.into())
    }

    /// The devices whose charts are kept, each called by its place among the answers, and the error.
    async fn kept(answers: impl Stream<Item = Result<Chart>>) -> (Vec<String>, String) {
        let read = answers.enumerate().map(|(at, answer)| (format!("dev-{at}").parse::<DevId>().unwrap(), answer));
        let mut charts = Vec::new();
        // What is there at once is read even then.
        let error = keep(read, Instant::now(), &mut charts).await.unwrap_err();
        (charts.into_iter().map(|(dev_id, _)| dev_id.to_string()).collect(), error.to_string())
    }

    #[tokio::test]
    async fn a_device_that_fails_hides_no_other() {
        let answers = [Ok(chart()), refused(Kind::Internal), refused(Kind::Timeout), Ok(chart())];
        let (devices, error) = kept(stream::iter(answers)).await;
        assert_eq!((devices.join(" ").as_str(), error.as_str()), ("dev-0 dev-3", "Internal"), "the first error");
    }

    #[tokio::test]
    async fn what_all_devices_have_in_common_ends_it() {
        for kind in [Kind::NotFound, Kind::Unauthenticated] {
            let answers = [Ok(chart()), refused(Kind::Internal), refused(kind), Ok(chart())];
            let (devices, error) = kept(stream::iter(answers)).await;
            assert_eq!((devices.join(" "), error), ("dev-0".to_owned(), format!("{kind:?}")));
        }
    }

    #[tokio::test]
    async fn what_comes_too_late_is_not_waited_for() {
        let answers = stream::iter([Ok(chart())]).chain(stream::pending());
        let (devices, error) = kept(answers).await;
        assert_eq!(devices, ["dev-0"]);
        assert!(error.contains("within 20 s"), "{error}");
    }
}
