//! The numeric fields of a device over time, as so many points as a chart has.

mod numbers;
mod series;

use api::rest::handler::Chart;
use futures::TryStreamExt;
use history::{History, Kind, Outcome, Query, Record, Revisions};
use tokio::task::yield_now;
use types::{AppId, DevId, Timestamp};

use self::series::Collector;
use crate::{Error, uplink::stored::newest_revisions};

/// How many uplinks a chart is made of at most, the newest.
const UPLINKS_MAX: usize = 200_000;
/// After how many uplinks others may go on.
const TOGETHER: usize = 256;

/// What a chart shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ChartQuery {
    pub(crate) app_id: AppId,
    pub(crate) dev_id: DevId,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
    /// The only field; all numeric ones if there is none.
    pub(crate) field: Option<String>,
    /// How many points each field has at most.
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
            ..Query::of(self.app_id.clone())
        }
    }
}

/// Reads the uplinks of a chart, each as it was decoded last.
pub(crate) async fn chart(history: &History, query: ChartQuery) -> Result<Chart, Error> {
    let uplinks = query.uplinks();
    let mut collector = Collector::new(&query);
    let mut batches = Box::pin(history.batches(uplinks.clone()));
    let (mut examined, mut is_cut) = (0, false);
    while let Some(mut batch) = batches.try_next().await? {
        is_cut = batch.len() > UPLINKS_MAX - examined;
        batch.truncate(UPLINKS_MAX - examined);
        examined += batch.len();
        let mut newest = newest_revisions(history, &uplinks, &batch).await?;
        let current = batch.into_iter().map(|record| newest.remove(&record.id).map_or(record, |newest| newest));
        add(&mut collector, current.collect()).await;
        if is_cut {
            break;
        }
    }
    Ok(Chart { examined: examined as u64, is_cut, ..collector.finish(&query) })
}

async fn add(collector: &mut Collector, records: Vec<Record>) {
    for part in records.chunks(TOGETHER) {
        // What the validator refused was not published.
        for record in part.iter().filter(|record| record.outcome == Outcome::Decoded) {
            collector.add(record.received, &record.result);
        }
        yield_now().await;
    }
}
