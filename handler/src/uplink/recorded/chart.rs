//! The numeric fields of a device over time, as so many points as a chart has.

mod numbers;
mod series;

use api::rest::handler::Chart;
use futures::TryStreamExt;
use history::{History, Kind, Outcome, Page, Query, Record, Revisions};
use server::usage::Usage;
use tokio::task::yield_now;
use types::{AppId, DevId, Timestamp};

use self::series::Collector;
use crate::{
    Error,
    uplink::stored::{UnreadableFiles, with_corrections},
};

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
    let mut pages = Box::pin(history.batches(uplinks.clone()));
    let (mut examined, mut is_cut) = (0, false);
    let mut unreadable = UnreadableFiles::default();
    while let Some(Page { mut records, skipped, .. }) = pages.try_next().await? {
        is_cut = records.len() > UPLINKS_MAX - examined;
        records.truncate(UPLINKS_MAX - examined);
        examined += records.len();
        usage.add_entries(records.len());
        unreadable.add(&skipped);
        let stored = with_corrections(history, &uplinks, records, &mut unreadable).await?;
        let current = stored.into_iter().map(|(record, newest)| (record.id.recorded(), newest.unwrap_or(record)));
        add(&mut collector, current.collect()).await;
        if is_cut {
            break;
        }
    }
    let unreadable_files = unreadable.take_new();
    Ok(Chart { examined: examined as u64, is_cut, unreadable_files, ..collector.finish(&query) })
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
