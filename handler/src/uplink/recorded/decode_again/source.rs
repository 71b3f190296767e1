//! Reads stored uplinks with their newest corrections, while those before them run.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use futures::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use history::{History, Page, Query, Record, Revisions};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use types::DevId;

use super::DecodeAgain;
use crate::{
    Error,
    uplink::stored::{StoredUplink, UncheckedFiles, UnreadableFiles, with_corrections},
};

/// Maximum numbers of uplinks decoded, and looked at, if only some of each device are wanted.
const PREVIEWED_MAX: usize = 100_000;
const LOOKED_AT_MAX: usize = 1_000_000;
/// Maximum size of a batch of records, in bytes. There are two batches in memory at most: one that runs, and one that
/// waits or is read.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Maximum size of both batches, in bytes, which their owner pays for. Their corrections and results come on top.
pub(crate) const DECODE_BYTES_MAX: usize = 2 * BATCH_BYTES_MAX;

/// Stored uplinks.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) uplinks: Vec<StoredUplink>,
    /// Names of files that could not be read and were not named before.
    pub(super) unreadable_files: Vec<String>,
    /// Files without checksums, each with the number of such rows, that were not named before.
    pub(super) unchecked_files: BTreeMap<String, u64>,
    /// True if there are more uplinks than are looked at.
    pub(super) is_cut: bool,
}

/// Stored uplinks, one batch ahead of those that were taken.
pub(super) struct StoredUplinks {
    batches: mpsc::Receiver<Result<Batch, Error>>,
    reading: Option<AbortOnDropHandle<()>>,
}

impl StoredUplinks {
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
    pub(super) async fn next(&mut self) -> Result<Option<Batch>, Error> {
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

fn read(history: &Arc<History>, again: &DecodeAgain) -> impl Stream<Item = Result<Batch, Error>> + use<> {
    let query = Query {
        kind: Some(history::Kind::Uplink),
        revisions: Revisions::Originals,
        oldest_first: again.per_device.is_none(),
        bytes_max: BATCH_BYTES_MAX,
        ..again.query.clone()
    };
    let reader = Reader {
        pages: history.batches(query.clone()).boxed(),
        history: history.clone(),
        query,
        newest: again.per_device.map(Newest::new),
        unreadable: UnreadableFiles::default(),
        unchecked: UncheckedFiles::default(),
    };
    stream::try_unfold(reader, async |mut reader| Ok(reader.next().await?.map(|batch| (batch, reader))))
}

struct Reader {
    pages: BoxStream<'static, Result<Page, history::Error>>,
    history: Arc<History>,
    query: Query,
    /// None if all are wanted.
    newest: Option<Newest>,
    unreadable: UnreadableFiles,
    unchecked: UncheckedFiles,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Batch>, Error> {
        if self.newest.as_ref().is_some_and(Newest::is_done) {
            return Ok(None);
        }
        let Some(Page { mut records, next, skipped, unchecked }) = self.pages.try_next().await? else {
            return Ok(None);
        };
        self.unreadable.add(&skipped);
        self.unchecked.add(&unchecked);
        let is_cut = self.newest.as_mut().is_some_and(|newest| newest.retain(&mut records, next.is_some()));
        let uplinks = with_corrections(&self.history, &self.query, records, &mut self.unreadable).await?;
        let (unreadable_files, unchecked_files) = (self.unreadable.take_new(), self.unchecked.take_new());
        Ok(Some(Batch { uplinks, unreadable_files, unchecked_files, is_cut }))
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

    /// Keeps the records that are wanted of a page. Returns true if the bounds leave others out, of this page or of
    /// those after it.
    fn retain(&mut self, records: &mut Vec<Record>, has_more: bool) -> bool {
        self.looked_at += records.len();
        records.retain(|record| {
            let count = self.seen.entry(record.dev_id.clone()).or_default();
            *count += 1;
            *count <= self.per_device
        });
        let wanted = records.len();
        records.truncate(self.take(wanted));
        records.len() < wanted || has_more && self.is_done()
    }

    /// Takes as many of the wanted records as there is room for.
    fn take(&mut self, wanted: usize) -> usize {
        let taken = wanted.min(PREVIEWED_MAX.saturating_sub(self.taken));
        self.taken += taken;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_cut_where_it_stops_and_more_may_follow() {
        let page = |newest: &mut Newest, has_more| newest.retain(&mut Vec::new(), has_more);
        let mut newest = Newest::new(10);
        assert!(!page(&mut newest, true) && !page(&mut newest, false));
        newest.looked_at = LOOKED_AT_MAX;
        assert!(page(&mut newest, true) && !page(&mut newest, false));
        let mut newest = Newest::new(10);
        assert_eq!((newest.take(PREVIEWED_MAX - 1), newest.is_done()), (PREVIEWED_MAX - 1, false));
        assert_eq!((newest.take(2), newest.is_done()), (1, true));
        assert!(page(&mut newest, true) && !page(&mut newest, false));
    }
}
