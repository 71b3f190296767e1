//! Files of the bucket, as one query sees them: once it cannot be reached, only copies are read.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use server::status::ErrorChain;

use crate::{
    Error, Skipped,
    bucket::{
        Bucket,
        listing::{Listing, Object},
        looks::Look,
    },
    directory::removed::Removal,
    query::Filter,
    sealed::{chunk::Chunks, file::SealedFile, search},
};

/// Length of an object, in bytes, from which its end is read first.
const LARGE_BYTES: u64 = 1 << 20;
/// Length of the end of an object that has its statistics and filters, in bytes.
const END_BYTES: u64 = 256 << 10;

/// Files of the bucket, as one query sees them.
#[derive(Default)]
pub(super) struct Objects<'a> {
    /// None if there is no bucket.
    bucket: Option<&'a Bucket>,
    pub(super) listed: Vec<Object>,
    /// Removals by others.
    pub(super) removed: Vec<Removal>,
    /// Set if the bucket cannot be listed.
    pub(super) skipped: Option<Skipped>,
    is_away: AtomicBool,
}

impl<'a> Objects<'a> {
    /// Lists the objects of an application.
    pub(super) fn look(bucket: Option<&'a Bucket>, app_id: &str) -> Result<Self, Error> {
        let Some(bucket) = bucket else { return Ok(Self::default()) };
        let Look { listing: Listing { objects: listed, removed }, skipped } = bucket.look(app_id)?;
        let is_away = AtomicBool::new(skipped.is_some());
        Ok(Self { bucket: Some(bucket), listed, removed, skipped, is_away })
    }

    /// Returns true if the object is a file of this directory.
    pub(super) fn is_here(&self, object: &Object) -> bool {
        self.bucket.is_some_and(|bucket| bucket.is_here(object))
    }

    /// Reads a copy of an object, unless its end shows that it has no wanted record. If there is no copy now, it counts
    /// as damaged; a copy that is damaged is not kept.
    pub(super) fn read(
        &self,
        object: &Object,
        filter: &Filter,
        read: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(bucket) = self.bucket else { return Ok(()) };
        let url: PathBuf = bucket.url_of(object);
        if self.is_away.load(Ordering::Relaxed) && !bucket.has_copy(object) {
            return Err(Error::damaged(&url, "the bucket cannot be reached now"));
        }
        if is_excluded(bucket, object, filter) {
            return Ok(());
        }
        let path = match bucket.fetch(object) {
            Ok(path) => path,
            Err(error) if error.is_gone() || matches!(error, Error::Stopped | Error::Damaged { .. }) => {
                return Err(error);
            }
            // There may also be no room for a copy.
            Err(error) => {
                self.is_away.store(matches!(error, Error::Bucket { .. }), Ordering::Relaxed);
                return Err(Error::damaged(&url, ErrorChain(&error).to_string()));
            }
        };
        match read(&path) {
            Err(Error::Damaged { source, .. }) => {
                bucket.forget(object)?;
                Err(Error::damaged(&url, source))
            }
            result => result,
        }
    }
}

/// Returns true if the end of a large object excludes all of its records. What fails here fails again, with a reason,
/// when the object is read as a whole.
fn is_excluded(bucket: &Bucket, object: &Object, filter: &Filter) -> bool {
    if object.bytes < LARGE_BYTES || !search::is_narrow(filter) || bucket.has_copy(object) {
        return false;
    }
    let Ok(end) = bucket.fetch_end(object, END_BYTES) else { return false };
    let end = Chunks::end(end.into(), object.bytes);
    let may_have = SealedFile::read_end(&bucket.url_of(object), end, |file| search::may_have(file, filter));
    may_have.is_ok_and(|may_have| !may_have)
}
