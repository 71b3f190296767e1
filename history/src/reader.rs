//! Reads pages of records from all sources.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{Stream, StreamExt, TryStreamExt, stream};
use types::{AppId, DevId};

use crate::{
    Error, LIMIT_MAX, Page, Query, Record, Usage,
    query::{Best, Filter},
    tail::{Tail, search},
    turns::Turns,
};

/// Reads pages of records from all sources.
pub(crate) struct Reader {
    _dir: PathBuf,
    tail: Option<Arc<Tail>>,
    turns: Turns,
}

/// Set when nobody waits for a page any more.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Reader {
    pub(crate) fn new(dir: PathBuf, tail: Option<Arc<Tail>>, scans_max: usize) -> Self {
        Self { _dir: dir, tail, turns: Turns::new(scans_max) }
    }

    /// One page, when it is the application's turn.
    pub(crate) async fn page(self: &Arc<Self>, query: Query) -> Result<Page, Error> {
        let _turn = self.turns.take(&query.app_id).await?;
        let stop = Stop::default();
        let (reader, is_stopped) = (Arc::clone(self), Arc::clone(&stop.0));
        let check = move || if is_stopped.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) };
        let page = tokio::task::spawn_blocking(move || reader.read(query, &check));
        page.await.map_err(|error| Error::Task(error.into()))?
    }

    /// All records that are wanted.
    pub(crate) fn scan(self: &Arc<Self>, mut query: Query) -> impl Stream<Item = Result<Record, Error>> + Send + use<> {
        query.limit = LIMIT_MAX;
        let pages = stream::try_unfold((Arc::clone(self), Some(query)), async |(reader, query)| {
            let Some(mut query) = query else { return Ok(None) };
            let page = reader.page(query.clone()).await?;
            let bound = if query.oldest_first { &mut query.after } else { &mut query.before };
            *bound = page.next;
            let next = page.next.is_some().then_some(query);
            Ok(Some((stream::iter(page.records).map(Ok), (reader, next))))
        });
        pages.try_flatten()
    }

    /// How much is kept of each application.
    pub(crate) async fn usage(&self) -> Result<Usage, Error> {
        let mut usage = Usage::default();
        for segment in self.tail.iter().flat_map(|tail| tail.segments()) {
            segment.index(|index| {
                for (app_id, bytes) in &index.applications {
                    app_id.parse().into_iter().for_each(|id| *usage.applications.entry(id).or_default() += bytes);
                }
            });
        }
        Ok(usage)
    }

    /// Deletes what is recorded so far.
    pub(crate) async fn remove(&self, _app_id: &AppId, _dev_id: Option<&DevId>) -> Result<(), Error> {
        Err(Error::Stopped)
    }

    fn read(&self, query: Query, check: &dyn Fn() -> Result<(), Error>) -> Result<Page, Error> {
        let limit = query.limit.min(LIMIT_MAX);
        // One more says whether there is another page.
        let mut best = Best::new(limit + 1, query.oldest_first);
        let filter = Filter::new(query);
        for segment in self.tail.iter().flat_map(|tail| tail.segments()) {
            search::search(&segment, &filter, &mut best, check)?;
        }
        let mut records = best.into_records();
        let has_more = records.len() > limit;
        records.truncate(limit);
        let next = records.last().map(|record| record.id).filter(|_| has_more);
        Ok(Page { records, next, skipped: Vec::new() })
    }
}
