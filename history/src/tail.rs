//! Records that are on disk, but not yet in Parquet files.

pub(crate) mod block;
mod blocks;
pub(crate) mod chart;
pub(crate) mod codec;
pub(crate) mod disk;
pub(crate) mod group;
pub(crate) mod heard;
pub(crate) mod index;
mod numbers;
pub(crate) mod owner;
pub(crate) mod search;
pub(crate) mod segment;
pub(crate) mod varint;

use std::{
    io::Write,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Mutex, RwLock};
use server::status::ErrorChain;

use self::{
    group::RawBlock,
    index::Index,
    owner::OwnDir,
    segment::{Segment, is_damaged, is_segment},
};
use crate::{
    Error, Loss, RecordId, Skipped,
    directory::{if_there, list},
    record::loss::set_kept,
    settings::bounds::SegmentBytes,
};

/// Number of full segments that may wait to be sealed before no more is kept.
const FULL_SEGMENTS_MAX: usize = 8;

/// Maximum number of records of a segment, and of their bytes: they are in memory while they are sealed.
const SEGMENT_RECORDS_MAX: u64 = 1 << 16;
const SEGMENT_RECORD_BYTES_MAX: u64 = 64 << 20;
/// For each so many applications that it has, a segment may become as large again, so that their files have enough
/// records to be worth their cost, but not more than [`SEGMENT_GROWTH_MAX`] times.
const SEGMENT_APPLICATIONS: u64 = 256;
const SEGMENT_GROWTH_MAX: u64 = 4;

/// The segments of this process.
#[derive(Debug)]
pub(crate) struct Tail {
    writer: u32,
    segment_bytes_max: SegmentBytes,
    dirs: Vec<OwnDir>,
    /// Oldest first.
    segments: RwLock<Vec<Arc<Segment>>>,
    active: Mutex<Active>,
}

/// State of the thread that writes.
#[derive(Debug, Default)]
struct Active {
    /// The segment that grows; none before there is something for it.
    segment: Option<Arc<Segment>>,
    /// Number of segments begun.
    begun: u32,
    /// True if the last attempt failed, so that this is logged once.
    is_failing: bool,
    /// Output buffer, kept for its capacity.
    buffer: Vec<u8>,
    scratch: Vec<u8>,
}

impl Tail {
    /// Opens the segments in `dir` that no running process has. `writer` is a random number.
    pub(crate) fn open(dir: &Path, writer: u32, segment_bytes_max: SegmentBytes) -> Result<Self, Error> {
        set_kept(true);
        let dirs = OwnDir::take_all(dir, &format!("{writer:08x}"))?;
        let mut segments = Vec::new();
        for dir in &dirs {
            let paths = list(&dir.path)?.into_iter();
            for path in paths.filter(|path| is_segment(path)) {
                match Segment::recover(path) {
                    Err(Error::Damaged { path, source }) => {
                        let path = path.display();
                        tracing::warn!(%path, error = %source, "a file in the directory of history is not read");
                    }
                    segment => segments.push(Arc::new(segment?)),
                }
            }
        }
        // What others have left is deleted once it is empty; the first directory stays, for what is written.
        dirs.iter().skip(1).for_each(OwnDir::delete_if_empty);
        segments.sort_by_key(|segment| segment.index(Index::first));
        // The newest goes on, so that restarts do not make many small files.
        let may_grow =
            |last: &&Arc<Segment>| !last.is_sealing() && !last.index(|index| is_full(index, segment_bytes_max));
        let last = segments.last().filter(may_grow);
        let active = Active { segment: last.cloned(), ..Active::default() };
        Ok(Self { writer, segment_bytes_max, dirs, segments: RwLock::new(segments), active: Mutex::new(active) })
    }

    /// Reads the segments in `dir` as they are now, also those of running processes. What is returned only serves to be
    /// read. Those that cannot be read, as a whole or in part, are returned beside.
    pub(crate) fn look(dir: &Path) -> Result<(Self, Vec<Skipped>), Error> {
        let (mut segments, mut skipped) = (Vec::new(), Vec::new());
        for own in if_there(list(dir))?.into_iter().filter(|path| path.is_dir()) {
            let paths = if_there(list(&own))?;
            let kept_aside = |path: &PathBuf| Skipped::unread(path.clone(), "it is damaged and kept aside".to_owned());
            skipped.extend(paths.iter().filter(|path| is_damaged(path)).map(kept_aside));
            for path in paths.into_iter().filter(|path| is_segment(path)) {
                match Segment::look(&path) {
                    Ok(None) => {}
                    Ok(Some((segment, changed))) => {
                        if changed > 0 {
                            skipped.push(Skipped::unread(path, format!("{changed} bytes of it have changed")));
                        }
                        segments.push(Arc::new(segment));
                    }
                    Err(error) => skipped.push(Skipped::of(error)?),
                }
            }
        }
        segments.sort_by_key(|segment| segment.index(Index::first));
        let tail = Self {
            writer: 0,
            segment_bytes_max: SegmentBytes { usual: 0, most: 0 },
            dirs: Vec::new(),
            segments: RwLock::new(segments),
            active: Mutex::default(),
        };
        Ok((tail, skipped))
    }

    /// Writes a group with one write and one sync.
    pub(crate) fn write(&self, blocks: &[RawBlock]) -> Result<(), Loss> {
        let mut active = self.active.lock();
        let result = self.write_to(&mut active, blocks);
        let was_failing = mem::replace(&mut active.is_failing, result.is_err());
        match &result {
            Err(error) if !was_failing => {
                set_kept(false);
                tracing::error!(error = %ErrorChain(error), "messages are not kept in history");
            }
            Ok(()) if was_failing => {
                set_kept(true);
                tracing::info!("messages are kept in history again");
            }
            _ => {}
        }
        result.map_err(|error| if error.is_full() { Loss::Full } else { Loss::Failed })
    }

    fn write_to(&self, active: &mut Active, blocks: &[RawBlock]) -> Result<(), Error> {
        let segment = self.active_segment(active)?;
        let Active { buffer, scratch, .. } = active;
        buffer.clear();
        let mut lengths = Vec::with_capacity(blocks.len());
        for block in blocks {
            let before = buffer.len();
            block::encode(self.writer, block.records, &block.bytes, scratch, buffer);
            lengths.push(buffer.len() - before);
        }
        let written = (&segment.file).write_all(&active.buffer).and_then(|()| segment.file.sync_data());
        if let Err(source) = written {
            self.take_back(active, &segment);
            return Err(Error::file("write", segment.path())(source));
        }
        segment.extend(|index| {
            blocks.iter().zip(lengths).for_each(|(block, length)| index.add(self.writer, length, &block.bytes));
        });
        if segment.index(|index| is_full(index, self.segment_bytes_max)) {
            active.segment = None;
        }
        Ok(())
    }

    /// Removes what was written in part. If that fails, the segment does not go on: it would hide what follows.
    fn take_back(&self, active: &mut Active, segment: &Segment) {
        if segment.file.set_len(segment.index(|index| index.bytes)).is_err() {
            active.segment = None;
        }
    }

    fn active_segment(&self, active: &mut Active) -> Result<Arc<Segment>, Error> {
        if let Some(segment) = &active.segment {
            return Ok(Arc::clone(segment));
        }
        let Some(dir) = self.dirs.first() else { return Err(no_room(&self.dirs)) };
        if self.segments().len() >= FULL_SEGMENTS_MAX + self.dirs.len() {
            return Err(no_room(&self.dirs));
        }
        let segment = Arc::new(Segment::create(&dir.path, format!("{:08x}{:04x}", self.writer, active.begun))?);
        active.begun = active.begun.saturating_add(1);
        active.segment = Some(Arc::clone(&segment));
        self.segments.write().push(Arc::clone(&segment));
        Ok(segment)
    }

    /// Ends the segment that grows if its first record is from this millisecond or before.
    pub(crate) fn end_old(&self, millis: u64) {
        let mut active = self.active.lock();
        let is_old = |segment: &Arc<Segment>| segment.index(Index::first).is_some_and(|first| first.millis <= millis);
        if active.segment.as_ref().is_some_and(is_old) {
            active.segment = None;
        }
    }

    /// Segments that do not grow any more.
    pub(crate) fn ended(&self) -> Vec<Arc<Segment>> {
        let active = self.active.lock();
        let mut segments = self.segments();
        segments.retain(|segment| active.segment.as_ref().is_none_or(|active| !Arc::ptr_eq(active, segment)));
        segments
    }

    /// Leaves out a segment, whose records are elsewhere.
    pub(crate) fn forget(&self, segment: &Segment) {
        let mut segments = self.segments.write();
        segments.retain(|kept| kept.name != segment.name);
    }

    /// Bytes of an application.
    pub(crate) fn bytes_of(&self, app_id: &str) -> u64 {
        let bytes =
            |segment: &Arc<Segment>| segment.index(|index| index.applications.get(app_id).copied().unwrap_or(0));
        self.segments().iter().map(bytes).sum()
    }

    /// The highest id of all records.
    pub(crate) fn last(&self) -> Option<RecordId> {
        self.segments().iter().filter_map(|segment| segment.index(Index::last)).max()
    }

    /// Returns the number of segments that do not grow any more.
    pub(crate) fn ended_count(&self) -> usize {
        let active = usize::from(self.active.lock().segment.is_some());
        self.segments.read().len().saturating_sub(active)
    }

    /// All segments, oldest first.
    pub(crate) fn segments(&self) -> Vec<Arc<Segment>> {
        self.segments.read().clone()
    }
}

/// Returns true if a segment should not grow any more.
fn is_full(index: &Index, bytes_max: SegmentBytes) -> bool {
    let growth = (index.applications.len() as u64 / SEGMENT_APPLICATIONS).clamp(1, SEGMENT_GROWTH_MAX);
    let bytes_max = bytes_max.usual.saturating_mul(growth).min(bytes_max.most);
    let is_large = index.bytes >= bytes_max || index.record_bytes >= SEGMENT_RECORD_BYTES_MAX;
    is_large || index.records >= SEGMENT_RECORDS_MAX * growth
}

/// Nothing more can be kept until segments are sealed.
fn no_room(dirs: &[OwnDir]) -> Error {
    let path = dirs.first().map(|dir| dir.path.clone()).unwrap_or_default();
    let source = std::io::Error::new(std::io::ErrorKind::StorageFull, "too many segments wait to become Parquet files");
    Error::File { what: "begin a segment in", path, source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use testing::Log;

    use super::*;

    #[test]
    fn the_log_says_once_that_nothing_is_kept_and_once_that_it_is_again() {
        let (log, _logging) = Log::start(tracing::Level::INFO);
        let dir = tempfile::tempdir().unwrap();
        let tail = Tail::open(dir.path(), 7, SegmentBytes { usual: 100, most: 100 }).unwrap();
        let own = dir.path().join("00000007");
        fs::remove_dir_all(&own).unwrap();
        (0..2).for_each(|_| assert_eq!(tail.write(&[]), Err(Loss::Failed)));
        fs::create_dir(&own).unwrap();
        (0..2).for_each(|_| assert_eq!(tail.write(&[]), Ok(())));
        for line in ["messages are not kept in history", "messages are kept in history again"] {
            assert_eq!(log.text().matches(line).count(), 1, "{}", log.text());
        }
    }

    #[test]
    fn a_segment_of_many_applications_becomes_larger_within_all_limits() {
        let [free, limited] = [u64::MAX, 150].map(|most| SegmentBytes { usual: 100, most });
        for (applications, times) in [(0, 1), (1, 1), (511, 1), (512, 2), (1024, 4), (100_000, 4)] {
            let applications = (0..applications).map(|number| (number.to_string(), 1)).collect();
            let mut index = Index { applications, bytes: 100 * times - 1, ..Index::default() };
            assert!(!is_full(&index, free), "{times}");
            index.bytes += 1;
            assert!(is_full(&index, free), "{times}");
            index.bytes = 149;
            assert_eq!(is_full(&index, limited), times == 1, "{times}");
            index.bytes = 150;
            assert!(is_full(&index, limited), "{times}");
            index.bytes = 0;
            index.records = SEGMENT_RECORDS_MAX * times;
            assert!(is_full(&index, free), "{times}");
        }
    }
}
