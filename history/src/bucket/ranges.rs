//! Reads ranges of objects, and keeps copies of them.

use std::{ops::Range, sync::atomic::Ordering};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, ObjectStore};

use super::{Bucket, REQUESTS_MAX, listing::Object};
use crate::Error;

/// The library's words if a server answers with a whole object. It has no kind for these.
const NOT_PARTIAL: &str = "non-partial response";
/// Its words if a server answers with other bytes than those of the range, or has none there.
const OTHER_RANGES: [&str; 3] = ["Requested ", "Wanted range", "416 Range Not Satisfiable"];

impl Bucket {
    /// False once the server has answered with a whole object where a range was asked for.
    pub(crate) fn has_ranges(&self) -> bool {
        !self.lacks_ranges.load(Ordering::Relaxed)
    }

    /// The ranges of an object, in order, of which copies are kept. None if the server has none of the object that was
    /// listed: then it can only be read as a whole. `is_away` if only copies can be read.
    pub(crate) fn fetch_ranges(
        &self,
        object: &Object,
        ranges: &[Range<u64>],
        is_away: bool,
    ) -> Result<Option<Vec<Bytes>>, Error> {
        let mut parts: Vec<_> = ranges.iter().map(|range| self.cache.part(object, range)).collect();
        let missing = ranges.iter().zip(&parts).filter(|(_, part)| part.is_none());
        let missing: Vec<_> = missing.map(|(range, _)| range.clone()).collect();
        if is_away && !missing.is_empty() {
            return Err(self.away(object));
        }
        let Some(fetched) = self.wait("read a file", self.request(object, &missing))? else { return Ok(None) };
        for (range, content) in missing.iter().zip(&fetched) {
            // A range without a copy, such as on a full disk, is fetched again the next time.
            _ = self.cache.add_part(object, range, content);
        }
        let empty = parts.iter_mut().filter(|part| part.is_none());
        empty.zip(fetched).for_each(|(part, content)| *part = Some(content));
        Ok(parts.into_iter().collect())
    }

    /// The error of an object of which there is no copy while the bucket is away.
    pub(crate) fn away(&self, object: &Object) -> Error {
        Error::damaged(&self.url_of(object), "the bucket cannot be reached now")
    }

    async fn request(&self, object: &Object, ranges: &[Range<u64>]) -> object_store::Result<Option<Vec<Bytes>>> {
        let requests = ranges.iter().map(|range| self.request_range(object, range));
        let parts: Vec<Option<Bytes>> = stream::iter(requests).buffered(REQUESTS_MAX).try_collect().await?;
        Ok(parts.into_iter().collect())
    }

    /// Requests one range. None if it is not there, or of another object than the one that was listed.
    async fn request_range(&self, object: &Object, range: &Range<u64>) -> object_store::Result<Option<Bytes>> {
        let options = GetOptions::new().with_range(Some(range.clone())).with_if_match(object.e_tag.clone());
        let found = match self.store.get_opts(&self.key(&object.key)?, options).await {
            Err(error) if self.is_other(&error) => return Ok(None),
            found => found?,
        };
        // Not every server looks at the tag.
        if !object.is_same(&found.meta) {
            return Ok(None);
        }
        let content = found.bytes().await?;
        Ok(Some(content).filter(|content| content.len() as u64 == range.end - range.start))
    }

    /// Returns true if the server has answered, but with something else than the range of the object.
    fn is_other(&self, error: &object_store::Error) -> bool {
        let text = error.to_string();
        if text.contains(NOT_PARTIAL) {
            self.lacks_ranges.store(true, Ordering::Relaxed);
            return true;
        }
        matches!(error, object_store::Error::Precondition { .. })
            || OTHER_RANGES.iter().any(|other| text.contains(other))
    }
}
