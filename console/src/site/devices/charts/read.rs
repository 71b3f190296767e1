//! Charts of several devices, as far as they can be read.

use std::{pin::pin, time::Duration};

use api::rest::handler::Chart;
use client::history::ChartClient;
use futures::{Stream, StreamExt, TryFutureExt, stream};
use tokio::time::{Instant, timeout};
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
    let waiting = (1..=range.devices.len()).rev();
    let devices = stream::iter(range.devices.clone().into_iter().zip(waiting));
    let read = devices.then(|(dev_id, waiting)| {
        let time_max = share(until.saturating_duration_since(Instant::now()), waiting);
        chart(&client, range, points, dev_id, time_max)
    });
    keep(read, charts).await
}

/// The share of each of so many devices in the time that is left.
fn share(left: Duration, waiting: usize) -> Duration {
    left / u32::try_from(waiting).unwrap_or(u32::MAX).max(1)
}

async fn chart(
    client: &ChartClient,
    range: &Range,
    points: usize,
    dev_id: DevId,
    time_max: Duration,
) -> (DevId, Result<Chart>) {
    let chart = client.chart(&dev_id, range.since..range.until, &range.field, points);
    let chart = in_time(time_max, chart.map_err(|error| Error::hiding("device", error))).await;
    (dev_id, chart)
}

/// Ends a device that takes longer, so that it hides none of those that follow.
async fn in_time(time_max: Duration, chart: impl Future<Output = Result<Chart>>) -> Result<Chart> {
    timeout(time_max, chart).await.unwrap_or(Err(Error::SlowCharts))
}

/// Keeps charts, and goes on after an error unless it would be the same for every device.
async fn keep(read: impl Stream<Item = (DevId, Result<Chart>)>, charts: &mut Vec<(DevId, Chart)>) -> Result<()> {
    let mut read = pin!(read);
    let mut first = Ok(());
    while let Some((dev_id, chart)) = read.next().await {
        match chart {
            Ok(chart) => charts.push((dev_id, chart)),
            Err(error) if concerns_all(&error) => return Err(error),
            Err(error) => first = first.and(Err(error)),
        }
    }
    first
}

fn concerns_all(error: &Error) -> bool {
    let is_unreachable = matches!(error, Error::Service(client::Error::Unreachable { .. }));
    is_unreachable || matches!(error.kind(), Kind::NotFound | Kind::Unauthenticated)
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future};
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
        let error = keep(read, &mut charts).await.unwrap_err();
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
        let (service, address, source) = ("handler", String::new(), "refused".into());
        let unreachable = Err(client::Error::Unreachable { service, address, source }.into());
        let (devices, error) = kept(stream::iter([Ok(chart()), unreachable, Ok(chart())])).await;
        assert!(devices == ["dev-0"] && error.contains("cannot reach the handler"), "{devices:?}: {error}");
    }

    #[tokio::test]
    async fn a_device_that_is_slow_hides_no_other() {
        let calls = [future::ready(Ok(chart())).boxed(), future::pending().boxed(), future::ready(Ok(chart())).boxed()];
        // What is there at once is read even without any time.
        let (devices, error) = kept(stream::iter(calls).then(|call| in_time(Duration::ZERO, call))).await;
        assert_eq!(devices, ["dev-0", "dev-2"]);
        assert!(error.contains("not read in time"), "{error}");
    }

    #[test]
    fn each_device_has_its_share_of_the_time() {
        let shares =
            [(20, 8), (16, 4), (3, 1), (0, 1)].map(|(left, waiting)| share(Duration::from_secs(left), waiting));
        assert_eq!(shares.map(|share| share.as_millis()), [2500, 4000, 3000, 0]);
    }
}
