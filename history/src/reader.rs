//! Reads pages of records from the tail and from files.

mod chart;
pub(crate) mod export;
mod heard;
mod objects;
mod scan_permits;
mod sources;

use std::{
    collections::HashSet,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use futures::{Stream, stream};
use parking_lot::Mutex;
use types::AppId;

use self::{
    objects::Objects,
    sources::{RecordSource, Sources},
};
use crate::{
    Error, LIMIT_MAX, OwnerOf, Page, Query, Skipped, Unchecked,
    bucket::Bucket,
    query::{Best, BestRecords, Filter, Shared},
    reader::scan_permits::ScanPermits,
    sealed::{file::SealedFile, name::FileName, search as search_file},
    tail::{disk::Disk, search as search_tail},
};

/// Number of records that a scan reads at once.
const SCAN_RECORDS: usize = 1 << 15;
/// Number of threads of a query.
const THREADS: usize = 2;
/// Number of times that sources are listed again because a file was deleted meanwhile.
const ATTEMPTS_MAX: usize = 5;
/// Maximum number of files remembered so that the log names each once.
const REPORTED_MAX: usize = 1000;

/// Reads pages of records from the tail and from files.
pub(crate) struct Reader {
    disk: Arc<Disk>,
    bucket: Option<Arc<Bucket>>,
    permits: ScanPermits,
    /// Files that the log has named.
    reported: Mutex<HashSet<std::path::PathBuf>>,
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
    pub(crate) fn new(disk: Arc<Disk>, bucket: Option<Arc<Bucket>>, (scans_max, owner_of): (usize, OwnerOf)) -> Self {
        Self { disk, bucket, permits: ScanPermits::new(scans_max, owner_of), reported: Mutex::default() }
    }

    /// One page, when it is the application's turn.
    pub(crate) async fn page(self: &Arc<Self>, query: Query) -> Result<Page, Error> {
        let limit = query.limit.clamp(1, LIMIT_MAX);
        self.part(query, limit).await
    }

    /// All records that are wanted, in large pages.
    pub(crate) fn batches(self: &Arc<Self>, query: Query) -> impl Stream<Item = Result<Page, Error>> + Send + use<> {
        stream::try_unfold((Arc::clone(self), Some(query)), async |(reader, query)| {
            let Some(mut query) = query else { return Ok(None) };
            let page = reader.part(query.clone(), SCAN_RECORDS).await?;
            let bound = if query.oldest_first { &mut query.after } else { &mut query.before };
            *bound = page.next;
            let next = page.next.is_some().then_some(query);
            Ok(Some((page, (reader, next))))
        })
    }

    async fn part(self: &Arc<Self>, query: Query, limit: usize) -> Result<Page, Error> {
        let app_id = query.app_id.clone();
        self.in_turn(&app_id, move |reader, is_stopped| reader.attempt(&query, limit, is_stopped)).await
    }

    /// Reads when it is the application's turn, until nobody waits for it any more.
    async fn in_turn<T: Send + 'static>(
        self: &Arc<Self>,
        app_id: &AppId,
        attempt: impl Fn(&Self, &AtomicBool) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let _permit = self.permits.take(app_id).await?;
        let stop = Stop::default();
        let (reader, app_id, is_stopped) = (Arc::clone(self), app_id.clone(), Arc::clone(&stop.0));
        let read = tokio::task::spawn_blocking(move || reader.read(&app_id, || attempt(&reader, &is_stopped)));
        read.await.map_err(|error| Error::Task(error.into()))?
    }

    fn read<T>(&self, app_id: &AppId, attempt: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        let mut attempts = 1;
        loop {
            match attempt() {
                // The records of a file that was merged are in another one now.
                Err(error) if error.is_gone() && attempts < ATTEMPTS_MAX => {
                    attempts += 1;
                    self.bucket.iter().for_each(|bucket| bucket.look_again(app_id.as_str()));
                }
                result => return result,
            }
        }
    }

    fn attempt(&self, query: &Query, limit: usize, is_stopped: &AtomicBool) -> Result<Page, Error> {
        let mut objects = Objects::look(self.bucket.as_ref(), query.app_id.as_str())?;
        let removed = mem::take(&mut objects.removed);
        let filter = Filter::new(query.clone(), self.disk.removals()?.with(removed));
        let Sources { sources, mut foreign } = Sources::list(&self.disk, &filter, &objects)?;
        foreign.extend(objects.skipped.take());
        // One more says whether there is another page.
        let best = Best::new(limit + 1, query.bytes_max, query.oldest_first);
        let best = Shared::new(best, query.oldest_first, is_stopped);
        let (skipped, unchecked) = (Mutex::new(foreign), Mutex::new(Vec::<Unchecked>::new()));
        let skip = |file| skipped.lock().push(file);
        let note = |file| unchecked.lock().push(file);
        in_threads(&sources, &|source| {
            best.check()?;
            let is_admitted = best.admits_any(source.first(), source.last());
            if is_admitted { search(source, &objects, (&filter, &best), (&skip, &note)) } else { Ok(()) }
        })?;
        let mut skipped = skipped.into_inner();
        skipped.sort();
        skipped.dedup();
        self.report(&skipped);
        let mut unchecked = unchecked.into_inner();
        unchecked.sort();
        unchecked.dedup();
        let BestRecords { mut records, is_cut } = best.into_records();
        let has_more = records.len() > limit || is_cut;
        records.truncate(limit);
        let next = records.last().map(|record| record.id).filter(|_| has_more);
        Ok(Page { records, next, skipped, unchecked })
    }

    /// Names files that could not be read in the log, each once.
    fn report(&self, skipped: &[Skipped]) {
        let mut reported = self.reported.lock();
        for Skipped { path, reason, .. } in skipped {
            if reported.len() < REPORTED_MAX && reported.insert(path.clone()) {
                tracing::warn!(path = %path.display(), reason, "a file in the directory of history is not read");
            }
        }
    }
}

/// Reads sources in their order, with few threads.
fn in_threads(
    sources: &[RecordSource],
    read: &(dyn Fn(&RecordSource) -> Result<(), Error> + Sync),
) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
            read(source)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let helpers: Vec<_> = (1..THREADS.min(sources.len())).map(|_| scope.spawn(work)).collect();
        let own = work();
        let panicked = |_| Error::Task("a thread of a query panicked".into());
        helpers.into_iter().try_for_each(|helper| helper.join().map_err(panicked)?)?;
        own
    })
}

fn search(
    source: &RecordSource,
    objects: &Objects<'_>,
    (filter, best): (&Filter, &Shared<'_>),
    (skip, note): (&dyn Fn(Skipped), &dyn Fn(Unchecked)),
) -> Result<(), Error> {
    let read = |name: &FileName, file: &SealedFile| {
        let rows = file.unchecked_rows();
        if rows > 0 {
            note(Unchecked { path: name.path.clone(), rows });
        }
        search_file::search(file, filter, best)
    };
    let result = match source {
        RecordSource::Segment(segment, ..) => search_tail::search(segment, (filter, best), skip),
        RecordSource::File(name) => SealedFile::read(&name.path, |file| read(name, file)),
        RecordSource::Object(name, object) => objects.read(object, filter, |file| read(name, file)),
    };
    result.or_else(|error| Skipped::of(error).map(skip))
}
