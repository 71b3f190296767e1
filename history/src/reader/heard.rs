//! Reads when devices were last heard.

use std::{
    mem,
    sync::{Arc, atomic::AtomicBool},
};

use parking_lot::Mutex;
use types::{AppId, Timestamp};

use super::{
    Reader, in_threads,
    objects::Objects,
    sources::{RecordSource, Sources},
};
use crate::{
    Error, LastHeard, Query, Skipped,
    query::{Filter, Heard},
    sealed::{file::SealedFile, search::heard as sealed_heard},
    tail::heard as tail_heard,
};

impl Reader {
    /// When the devices of an application were last heard, when it is its turn.
    pub(crate) async fn last_heard(
        self: &Arc<Self>,
        app_id: &AppId,
        since: Option<Timestamp>,
    ) -> Result<LastHeard, Error> {
        let query = Query { since, ..Query::uplinks_of(app_id.clone()) };
        self.in_turn(app_id, move |reader, is_stopped| reader.attempt_heard(&query, is_stopped)).await
    }

    fn attempt_heard(&self, query: &Query, is_stopped: &AtomicBool) -> Result<LastHeard, Error> {
        let mut objects = Objects::look(self.bucket.as_ref(), query.app_id.as_str())?;
        let removed = mem::take(&mut objects.removed);
        let filter = Filter::new(query.clone(), self.disk.removals()?.with(removed));
        let Sources { sources, mut foreign } = Sources::list(&self.disk, &filter, &objects)?;
        foreign.extend(objects.skipped.take());
        let heard = Heard::new(is_stopped);
        let skipped = Mutex::new(foreign);
        let skip = |file| skipped.lock().push(file);
        in_threads(&sources, &|source| {
            heard.check()?;
            read(source, &objects, (&filter, &heard), &skip)
        })?;
        let mut skipped = skipped.into_inner();
        skipped.sort();
        skipped.dedup();
        self.report(&skipped);
        Ok(heard.into_times(skipped.iter().any(|file| !file.is_foreign)))
    }
}

fn read(
    source: &RecordSource,
    objects: &Objects<'_>,
    (filter, heard): (&Filter, &Heard<'_>),
    skip: &dyn Fn(Skipped),
) -> Result<(), Error> {
    let read = |file: &SealedFile| sealed_heard::read(file, filter, heard);
    let result = match source {
        RecordSource::Segment(segment, ..) => tail_heard::read(segment, (filter, heard), skip),
        RecordSource::File(file) => SealedFile::read(&file.path, read),
        RecordSource::Object(_, object) => objects.read(object, filter, read),
    };
    result.or_else(|error| Skipped::of(error).map(skip))
}
