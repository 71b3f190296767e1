//! Moves the records of a segment to Parquet files: one for each application and day. The names of the files follow from
//! the segment, so that it can be done again after a kill at any step.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    mem,
    path::{Path, PathBuf},
};

use super::{Keeper, PassState};
use crate::{
    Error, RecordId,
    directory::{Change, remove, removed::Removal, sync_each},
    record::View,
    record::moment,
    sealed::{
        name::{FileName, day_dir},
        write::{Row, finish, sort, write_file},
    },
    tail::{
        Tail,
        block::Block,
        codec::{self, Head},
        segment::Segment,
    },
};

/// A record of a segment, of which only what its place in a file follows from has been read.
#[derive(Clone, Copy)]
struct Encoded<'a> {
    writer: u32,
    head: Head<'a>,
    record: &'a [u8],
}

impl Row for Encoded<'_> {
    fn id(&self) -> RecordId {
        self.head.id
    }

    fn dev_id(&self) -> &[u8] {
        self.head.dev_id
    }

    fn view(&self) -> Option<View<'_>> {
        codec::decode(self.writer, self.record)
    }
}

/// Number of directories that a file is in: that of its day, that of its application, and that of history.
const DIRS: usize = 3;

/// A file of a segment.
struct Written {
    /// Its name before all are written; none if an earlier attempt has given it its name.
    unfinished: Option<PathBuf>,
    path: PathBuf,
}

impl Keeper {
    /// Seals segments that are full or old.
    pub(super) fn seal_due(&self, state: &mut PassState, now: u64) -> Result<(), Error> {
        self.seal_until(now.saturating_sub(self.bounds.seal_after_ms()), state)
    }

    /// Seals everything.
    pub(crate) fn seal_now(&self) -> Result<(), Error> {
        self.seal_until(u64::MAX, &mut self.state.lock())
    }

    fn seal_until(&self, millis: u64, state: &mut PassState) -> Result<(), Error> {
        let Some(tail) = &self.disk.tail else { return Ok(()) };
        tail.end_old(millis);
        // While there is nothing to seal, it does not wait for other processes.
        if tail.ended_count() == 0 { Ok(()) } else { self.seal_ended(&self.disk.change()?, tail, state) }
    }

    /// Seals what may have removed records: later ones need no sealing, however often a removal is tried.
    pub(super) fn seal_removed(&self, change: &Change, removal: &Removal, state: &mut PassState) -> Result<(), Error> {
        let Some(tail) = &self.disk.tail else { return Ok(()) };
        tail.end_old(removal.last.millis);
        self.seal_ended(change, tail, state)
    }

    fn seal_ended(&self, change: &Change, tail: &Tail, state: &mut PassState) -> Result<(), Error> {
        // One that cannot be sealed now does not hold up the others.
        let mut result = Ok(());
        let ended = tail.ended();
        let has_ended = !ended.is_empty();
        for segment in ended {
            result = result.and(self.seal(change, tail, &segment));
            state.passes = 0;
        }
        if has_ended {
            self.wake_uploads();
        }
        result
    }

    fn seal(&self, _change: &Change, tail: &Tail, segment: &Segment) -> Result<(), Error> {
        segment.begin_seal()?;
        let root = self.disk.root();
        let opened = File::open(root).map_err(Error::file("open", root))?;
        let files = self.write(segment, &opened)?;
        {
            let _moving = self.disk.moving();
            unfinished(&files).try_for_each(|(unfinished, path)| finish(unfinished, path))?;
            tail.forget(segment);
        }
        // The names must last before the only other copy goes, also those of directories that are new.
        let dirs: BTreeSet<_> = files.iter().flat_map(|file| file.path.ancestors().skip(1).take(DIRS)).collect();
        sync_each(&opened, &dirs.into_iter().collect::<Vec<_>>())?;
        segment.delete()
    }

    /// Writes the files of a segment, except those that are there already.
    fn write(&self, segment: &Segment, opened: &File) -> Result<Vec<Written>, Error> {
        let removals = self.disk.removals()?;
        let blocks = segment.read_all()?;
        let is_kept = |row: &Encoded<'_>| !removals.has(row.head.id, row.head.app_id, row.head.dev_id);
        let days = by_day(blocks.iter().flat_map(encoded).filter(is_kept));
        let mut files = Vec::new();
        let mut days = days.iter().filter_map(|((app_id, _), rows)| Some((str::from_utf8(app_id).ok()?, rows)));
        let written =
            days.try_for_each(|(app_id, rows)| self.write_day(app_id, &segment.name, &sort(rows), &mut files));
        let paths = unfinished(&files).map(|(unfinished, _)| unfinished).collect::<Vec<_>>();
        if let Err(error) = written.and_then(|()| sync_each(opened, &paths)) {
            // On a full disk they would keep the room that others need.
            paths.iter().for_each(|path| _ = remove(path));
            return Err(error);
        }
        Ok(files)
    }

    fn write_day(
        &self,
        app_id: &str,
        origin: &str,
        rows: &[Encoded<'_>],
        files: &mut Vec<Written>,
    ) -> Result<(), Error> {
        let Some((first, last)) = ids(rows) else { return Ok(()) };
        let dir = day_dir(self.disk.root(), app_id, first.millis);
        let path = FileName::new(&dir, first, last, origin).path;
        if path.exists() {
            files.push(Written { unfinished: None, path });
            return Ok(());
        }
        fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        let unfinished = Self::unfinished(&path);
        files.push(Written { unfinished: Some(unfinished.clone()), path });
        write_file(&unfinished, rows)
    }
}

/// The files that do not have their names yet, and these.
fn unfinished(files: &[Written]) -> impl Iterator<Item = (&Path, &Path)> {
    files.iter().filter_map(|file| Some((file.unfinished.as_deref()?, &*file.path)))
}

/// The records of each application and day.
fn by_day<'a>(rows: impl Iterator<Item = Encoded<'a>>) -> BTreeMap<(&'a [u8], u64), Vec<Encoded<'a>>> {
    let mut files = BTreeMap::new();
    let mut run: ((&[u8], u64), Vec<_>) = Default::default();
    for row in rows {
        let key = (row.head.app_id, row.head.id.millis / moment::DAY_MS);
        // Most follow one of the same application: only others are looked up.
        if run.0 != key {
            let rows = files.remove(&key).unwrap_or_default();
            let (key, rows) = mem::replace(&mut run, (key, rows));
            files.insert(key, rows);
        }
        run.1.push(row);
    }
    files.insert(run.0, run.1);
    files
}

/// The records of a block.
fn encoded(block: &Block) -> impl Iterator<Item = Encoded<'_>> {
    let encoded =
        |record| Some(Encoded { writer: block.writer, head: codec::decode_head(block.writer, record)?, record });
    codec::records(&block.records).filter_map(encoded)
}

/// The lowest and the highest id of some rows.
pub(super) fn ids(rows: &[impl Row]) -> Option<(RecordId, RecordId)> {
    let ids = rows.iter().map(Row::id);
    Some((ids.clone().min()?, ids.max()?))
}
