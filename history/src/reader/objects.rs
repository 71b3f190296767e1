//! Files of the bucket, as one query sees them: once it cannot be reached, only copies are read.

use std::{
    ops::Range,
    path::Path,
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parquet::errors::Result as ParquetResult;
use server::status::ErrorChain;

use crate::{
    Error, Skipped,
    bucket::{
        Bucket,
        listing::{Listing, Object},
        listing_cache::CachedListing,
    },
    directory::removed::Removal,
    query::Filter,
    sealed::{
        file::SealedFile,
        parts::{Failure, Fetch, Parts},
        search,
    },
};

/// Length of an object, in bytes, from which parts of it are read rather than all.
const LARGE_BYTES: u64 = 1 << 20;
/// Length of the end of an object, in bytes, that says where all else is.
const END_BYTES: u64 = 256 << 10;

/// Files of the bucket, as one query sees them.
#[derive(Default)]
pub(super) struct Objects<'a> {
    /// None if there is no bucket.
    bucket: Option<&'a Arc<Bucket>>,
    pub(super) listed: Vec<Object>,
    /// Removals by others.
    pub(super) removed: Vec<Removal>,
    /// Set if the bucket cannot be listed.
    pub(super) skipped: Option<Skipped>,
    is_away: Arc<AtomicBool>,
}

impl<'a> Objects<'a> {
    /// Lists the objects of an application.
    pub(super) fn look(bucket: Option<&'a Arc<Bucket>>, app_id: &str) -> Result<Self, Error> {
        let Some(bucket) = bucket else { return Ok(Self::default()) };
        let CachedListing { listing: Listing { objects: listed, removed }, skipped } = bucket.look(app_id)?;
        let is_away = Arc::new(AtomicBool::new(skipped.is_some()));
        Ok(Self { bucket: Some(bucket), listed, removed, skipped, is_away })
    }

    /// Returns true if the object is a file of this directory.
    pub(super) fn is_here(&self, object: &Object) -> bool {
        self.bucket.is_some_and(|bucket| bucket.is_here(object))
    }

    /// Reads an object: of a large one the parts that are needed, or a copy. What cannot be fetched now counts as
    /// damaged; a copy that is damaged is not kept.
    pub(super) fn read(
        &self,
        object: &Object,
        filter: &Filter,
        read: impl Fn(&SealedFile) -> Result<ParquetResult<()>, Error>,
    ) -> Result<(), Error> {
        let Some(bucket) = self.bucket else { return Ok(()) };
        let is_large = object.bytes >= LARGE_BYTES && bucket.has_ranges() && !bucket.has_copy(object);
        let parts =
            if is_large && search::is_selective(filter) { self.read_parts(bucket, object, &read) } else { None };
        parts.unwrap_or_else(|| self.read_copy(bucket, object, &read))
    }

    /// Reads parts of an object. None if its whole is needed.
    fn read_parts(
        &self,
        bucket: &Arc<Bucket>,
        object: &Object,
        read: impl Fn(&SealedFile) -> Result<ParquetResult<()>, Error>,
    ) -> Option<Result<(), Error>> {
        let parts = Arc::new(Parts::new(object.bytes, self.fetch(bucket, object)));
        let end = object.bytes.saturating_sub(END_BYTES)..object.bytes;
        // Without its end, nothing is read, and the parts say why.
        let result = match parts.need(slice::from_ref(&end)) {
            Ok(()) => SealedFile::read_parts(&bucket.url_of(object), &parts, read),
            Err(_) => Ok(()),
        };
        match (parts.failure(), result) {
            (Some(Failure::Whole), _) => None,
            (Some(Failure::Fetch(error)), _) => Some(Err(error)),
            (None, Err(error @ Error::Damaged { .. })) => Some(bucket.forget(object).and(Err(error))),
            (None, result) => Some(result),
        }
    }

    fn fetch(&self, bucket: &Arc<Bucket>, object: &Object) -> Fetch {
        let (bucket, object, is_away) = (Arc::clone(bucket), object.clone(), Arc::clone(&self.is_away));
        Box::new(move |ranges: &[Range<u64>]| {
            let fetched = bucket.fetch_ranges(&object, ranges, is_away.load(Ordering::Relaxed));
            fetched.map_err(|error| not_fetched(error, &bucket.url_of(&object), &is_away))
        })
    }

    /// Reads a copy of an object.
    fn read_copy(
        &self,
        bucket: &Bucket,
        object: &Object,
        read: impl Fn(&SealedFile) -> Result<ParquetResult<()>, Error>,
    ) -> Result<(), Error> {
        if self.is_away.load(Ordering::Relaxed) && !bucket.has_copy(object) {
            return Err(bucket.away(object));
        }
        let url = bucket.url_of(object);
        let path = bucket.fetch(object).map_err(|error| not_fetched(error, &url, &self.is_away))?;
        match SealedFile::read(&path, read) {
            Err(Error::Damaged { source, .. }) => {
                bucket.forget(object)?;
                Err(Error::damaged(&url, source))
            }
            result => result,
        }
    }
}

/// The error of an object that cannot be fetched: it counts as damaged, unless it is gone or nobody waits.
fn not_fetched(error: Error, url: &Path, is_away: &AtomicBool) -> Error {
    if error.is_gone() || matches!(error, Error::Stopped | Error::Damaged { .. }) {
        return error;
    }
    // There may also be no room for a copy.
    is_away.fetch_or(matches!(error, Error::Bucket { .. }), Ordering::Relaxed);
    Error::damaged(url, ErrorChain(&error).to_string())
}
