//! Parts of a file that is elsewhere: what is needed of it is fetched once, in few requests.

use std::{fmt, io, ops::Range, slice};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::{Error, sealed::checksums::BLOCK_BYTES};

/// Fetches ranges of a file in order. None if only the whole file can be had.
pub(crate) type Fetch = Box<dyn Fn(&[Range<u64>]) -> Result<Option<Vec<Bytes>>, Error> + Send + Sync>;

/// Ranges with less between them, in bytes, are fetched as one, because a request takes longer than that.
const GAP_BYTES_MAX: u64 = 64 << 10;
/// Maximum size of the parts that a search holds at once, in bytes.
const HELD_BYTES_MAX: u64 = 8 << 20;

/// Parts of a file, as one search needs them. They consist of whole blocks, because checksums are of these.
pub(crate) struct Parts {
    /// Length of the file.
    bytes: u64,
    fetch: Fetch,
    state: Mutex<FetchedParts>,
}

#[derive(Default)]
struct FetchedParts {
    /// Parts with their positions. Each range that was needed is in one of them.
    held: Vec<(u64, Bytes)>,
    /// Bytes of all parts so far.
    fetched: u64,
    failure: Option<Failure>,
}

/// The reason why parts are not enough.
pub(crate) enum Failure {
    /// The whole file is needed: most of it is wanted, or no parts can be had.
    Whole,
    /// A part cannot be fetched.
    Fetch(Error),
}

impl Parts {
    /// Parts of a file of this length, none of which was fetched yet.
    pub(crate) fn new(bytes: u64, fetch: Fetch) -> Self {
        Self { bytes, fetch, state: Mutex::default() }
    }

    /// The reason for the first error, unless that was about a range outside of the file.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.state.lock().failure.take()
    }

    /// Fetches what is missing of these ranges.
    pub(crate) fn need(&self, ranges: &[Range<u64>]) -> io::Result<()> {
        let missing = self.missing(ranges)?;
        if missing.is_empty() {
            return Ok(());
        }
        let fetched = (self.fetch)(&missing);
        let mut state = self.state.lock();
        match fetched {
            Ok(Some(parts)) => {
                state.held.extend(missing.iter().map(|range| range.start).zip(parts));
                Ok(())
            }
            Ok(None) => Err(state.fail(Failure::Whole)),
            Err(error) => Err(state.fail(Failure::Fetch(error))),
        }
    }

    /// Returns what has to be fetched for these ranges, and counts it.
    fn missing(&self, ranges: &[Range<u64>]) -> io::Result<Vec<Range<u64>>> {
        let mut state = self.state.lock();
        if state.failure.is_some() {
            return Err(not_fetched());
        }
        if ranges.iter().any(|range| range.start > range.end || range.end > self.bytes) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let missing = join(ranges.iter().filter(|range| state.find(range).is_none()), self.bytes);
        let bytes: u64 = missing.iter().map(|range| range.end - range.start).sum();
        let held: u64 = state.held.iter().map(|(_, part)| part.len() as u64).sum();
        if held + bytes > HELD_BYTES_MAX || state.fetched + bytes > self.bytes / 2 {
            return Err(state.fail(Failure::Whole));
        }
        state.fetched += bytes;
        Ok(missing)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        self.need(slice::from_ref(&range))?;
        self.state.lock().find(&range).ok_or_else(not_fetched)
    }

    /// Drops all parts but the first.
    pub(super) fn release(&self) {
        self.state.lock().held.truncate(1);
    }
}

impl FetchedParts {
    fn find(&self, range: &Range<u64>) -> Option<Bytes> {
        if range.is_empty() {
            return Some(Bytes::new());
        }
        let has = |start: u64, part: &Bytes| start <= range.start && range.end <= start + part.len() as u64;
        let (start, part) = self.held.iter().find(|(start, part)| has(*start, part))?;
        let offset = |position: u64| usize::try_from(position - start).ok();
        Some(part.slice(offset(range.start)?..offset(range.end)?))
    }

    fn fail(&mut self, failure: Failure) -> io::Error {
        self.failure = Some(failure);
        not_fetched()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Parts").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

fn not_fetched() -> io::Error {
    io::Error::other("a part of the file was not fetched")
}

/// Joins ranges that are near to each other, in order, within a file of this length.
fn join<'a>(ranges: impl Iterator<Item = &'a Range<u64>>, bytes: u64) -> Vec<Range<u64>> {
    let start = |range: &Range<u64>| range.start / BLOCK_BYTES * BLOCK_BYTES;
    let end = |range: &Range<u64>| range.end.div_ceil(BLOCK_BYTES).saturating_mul(BLOCK_BYTES).min(bytes);
    let mut ranges: Vec<_> = ranges.map(|range| start(range)..end(range)).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_BYTES_MAX) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const BYTES: u64 = 1 << 20;

    /// Parts of a file whose bytes are the numbers of their blocks, and what was fetched.
    fn parts() -> (Parts, Arc<Mutex<Vec<Range<u64>>>>) {
        let fetched = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&fetched);
        let part = |range: &Range<u64>| range.clone().map(|position| (position / BLOCK_BYTES) as u8).collect::<Bytes>();
        let fetch = move |ranges: &[Range<u64>]| {
            noted.lock().extend_from_slice(ranges);
            Ok(Some(ranges.iter().map(part).collect()))
        };
        (Parts::new(BYTES, Box::new(fetch)), fetched)
    }

    #[test]
    fn what_is_near_is_fetched_as_one_and_nothing_twice() {
        let (parts, fetched) = parts();
        let ranges = [300_000..300_001, 5000..5001, 40_000..50_000, 9000..9000];
        parts.need(&ranges).unwrap();
        assert_eq!(*fetched.lock(), [4096..53_248, 299_008..303_104]);
        parts.need(&ranges).unwrap();
        assert_eq!(parts.read(8191..8194).unwrap(), [1, 2, 2][..]);
        assert_eq!(fetched.lock().len(), 2);
        parts.read(BYTES - 1..BYTES).unwrap();
        // What was fetched first stays.
        parts.release();
        assert_eq!(parts.read(40_000..40_001).unwrap(), [9][..]);
        assert_eq!(parts.read(300_000..300_001).unwrap(), [73][..]);
        assert_eq!(fetched.lock().len(), 4);
        assert!(parts.failure().is_none());
    }

    #[test]
    fn a_range_outside_of_the_file_is_an_error_and_no_failure() {
        let (parts, fetched) = parts();
        for range in [BYTES - 1..BYTES + 1, u64::MAX - 1..u64::MAX] {
            assert!(parts.read(range).is_err());
        }
        assert!(parts.failure().is_none() && fetched.lock().is_empty());
    }

    #[test]
    fn more_than_half_of_a_file_is_its_whole() {
        let (parts, fetched) = parts();
        parts.read(0..400_000).unwrap();
        parts.release();
        parts.read(600_000..800_000).unwrap_err();
        // Nothing more is asked for.
        parts.read(600_000..600_001).unwrap_err();
        assert_eq!(fetched.lock().len(), 1);
        assert!(matches!(parts.failure(), Some(Failure::Whole)));
    }

    #[test]
    fn a_server_without_parts_and_one_that_fails_are_told_apart() {
        let parts = Parts::new(BYTES, Box::new(|_| Ok(None)));
        parts.read(0..1).unwrap_err();
        assert!(matches!(parts.failure(), Some(Failure::Whole)));
        let parts = Parts::new(BYTES, Box::new(|_| Err(Error::Stopped)));
        parts.read(0..1).unwrap_err();
        assert!(matches!(parts.failure(), Some(Failure::Fetch(Error::Stopped))));
    }
}
