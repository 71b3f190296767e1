//! Reads stored uplinks with their newest corrections, while those before them run.

use std::{collections::HashMap, sync::Arc};

use futures::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use history::{History, Query, Record, Revisions};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use types::DevId;

use super::DecodeAgain;
use crate::{Error, uplink::stored::newest_revisions};

/// Maximum numbers of uplinks decoded, and looked at, if only some of each device are wanted.
const PREVIEWED_MAX: usize = 100_000;
const LOOKED_AT_MAX: usize = 1_000_000;
/// Maximum size of a batch of records, in bytes. There are two batches in memory at most: one that runs, and one that
/// waits or is read.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// An uplink, and the newest correction of it if there is one.
pub(super) type Stored = (Record, Option<Record>);

/// Stored uplinks, one batch ahead of those that were taken.
pub(super) struct Source {
    batches: mpsc::Receiver<Result<Vec<Stored>, Error>>,
    reading: Option<AbortOnDropHandle<()>>,
}

impl Source {
    pub(super) fn new(history: &Arc<History>, again: &DecodeAgain) -> Self {
        let mut batches = Box::pin(read(history, again));
        let (send, receive) = mpsc::channel(1);
        let reading = tokio::spawn(async move {
            // Nothing is read before there is room for it.
            while let Ok(room) = send.reserve().await
                && let Some(batch) = batches.next().await
            {
                room.send(batch);
            }
        });
        Self { batches: receive, reading: Some(AbortOnDropHandle::new(reading)) }
    }

    /// The next batch; none after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Stored>>, Error> {
        match (self.batches.recv().await, self.reading.take()) {
            (Some(batch), reading) => {
                self.reading = reading;
                batch.map(Some)
            }
            (None, Some(reading)) => match reading.await {
                Ok(()) => Ok(None),
                Err(error) => Err(history::Error::Task(error.into()).into()),
            },
            (None, None) => Ok(None),
        }
    }
}

fn read(history: &Arc<History>, again: &DecodeAgain) -> impl Stream<Item = Result<Vec<Stored>, Error>> + use<> {
    let query = Query {
        kind: Some(history::Kind::Uplink),
        revisions: Revisions::Originals,
        oldest_first: again.per_device.is_none(),
        bytes_max: BATCH_BYTES_MAX,
        ..again.query.clone()
    };
    let reader = Reader {
        batches: history.batches(query.clone()).boxed(),
        history: history.clone(),
        query,
        newest: again.per_device.map(Newest::new),
    };
    stream::try_unfold(reader, async |mut reader| Ok(reader.next().await?.map(|batch| (batch, reader))))
}

struct Reader {
    batches: BoxStream<'static, Result<Vec<Record>, history::Error>>,
    history: Arc<History>,
    query: Query,
    /// None if all are wanted.
    newest: Option<Newest>,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Vec<Stored>>, Error> {
        if self.newest.as_ref().is_some_and(Newest::is_done) {
            return Ok(None);
        }
        let Some(mut records) = self.batches.try_next().await? else { return Ok(None) };
        if let Some(newest) = &mut self.newest {
            newest.retain(&mut records);
        }
        let mut newest = newest_revisions(&self.history, &self.query, &records).await?;
        let with_newest = |record: Record| {
            let newest = newest.remove(&record.id);
            (record, newest)
        };
        Ok(Some(records.into_iter().map(with_newest).collect()))
    }
}

/// Picks the newest uplinks of each device.
struct Newest {
    per_device: usize,
    seen: HashMap<DevId, usize>,
    looked_at: usize,
    taken: usize,
}

impl Newest {
    fn new(per_device: usize) -> Self {
        Self { per_device, seen: HashMap::new(), looked_at: 0, taken: 0 }
    }

    fn is_done(&self) -> bool {
        self.taken >= PREVIEWED_MAX || self.looked_at >= LOOKED_AT_MAX
    }

    fn retain(&mut self, records: &mut Vec<Record>) {
        self.looked_at += records.len();
        records.retain(|record| {
            let count = self.seen.entry(record.dev_id.clone()).or_default();
            *count += 1;
            *count <= self.per_device
        });
        records.truncate(PREVIEWED_MAX.saturating_sub(self.taken));
        self.taken += records.len();
    }
}
