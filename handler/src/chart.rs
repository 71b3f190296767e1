//! The numeric fields of a device over time, as so many points as a chart has.

mod numbers;
mod series;

use api::rest::handler::Chart;
use futures::TryStreamExt;
use history::{History, Kind, Outcome, Query, Record, Revisions};
use server::usage::Usage;
use tokio::task::yield_now;
use types::{AppId, DevId, Timestamp};

use self::series::Collector;
use crate::{Error, uplink::stored::newest_revisions};

/// Maximum number of uplinks in a chart: the newest.
const UPLINKS_MAX: usize = 200_000;
/// Bytes of uplinks read at once.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// After how many uplinks others may go on.
const UPLINKS_TOGETHER: usize = 64;

/// Device, time and fields of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChartQuery {
    pub(crate) app_id: AppId,
    pub(crate) dev_id: DevId,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    /// The only field; all numeric ones if there is none.
    pub(crate) field: Option<String>,
    /// Maximum number of points of each field.
    pub(crate) points: usize,
}

impl ChartQuery {
    fn uplinks(&self) -> Query {
        Query {
            dev_id: Some(self.dev_id.clone()),
            since: Some(self.since),
            until: Some(self.until),
            kind: Some(Kind::Uplink),
            revisions: Revisions::Originals,
            bytes_max: BATCH_BYTES_MAX,
            ..Query::of(self.app_id.clone())
        }
    }
}

/// Reads the uplinks of a chart, each as it was decoded last, and charges them to `usage`.
pub(crate) async fn chart(history: &History, query: ChartQuery, usage: &Usage) -> Result<Chart, Error> {
    let uplinks = query.uplinks();
    let mut collector = Collector::new(&query);
    let mut batches = Box::pin(history.batches(uplinks.clone()));
    let (mut examined, mut is_cut) = (0, false);
    while let Some(mut batch) = batches.try_next().await? {
        is_cut = batch.len() > UPLINKS_MAX - examined;
        batch.truncate(UPLINKS_MAX - examined);
        examined += batch.len();
        usage.add_entries(batch.len());
        let mut newest = newest_revisions(history, &uplinks, &batch).await?;
        let current =
            batch.into_iter().map(|record| (record.id.recorded(), newest.remove(&record.id).unwrap_or(record)));
        add(&mut collector, current.collect()).await;
        if is_cut {
            break;
        }
    }
    Ok(Chart { examined: examined as u64, is_cut, ..collector.finish(&query) })
}

/// Each with the time when it was recorded first, as everywhere in history: networks report any time of receipt.
async fn add(collector: &mut Collector, records: Vec<(Timestamp, Record)>) {
    for part in records.chunks(UPLINKS_TOGETHER) {
        // What the validator refused was not published.
        for (time, record) in part.iter().filter(|(_, record)| record.outcome == Outcome::Decoded) {
            collector.add(*time, &record.result);
        }
        yield_now().await;
    }
}
