//! A file of the tail, whose blocks an index finds.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use parking_lot::RwLock;

use crate::{
    Error,
    directory::{if_there, list, remove, sync},
    tail::{
        block::{self, Block},
        blocks::{self, CHECKED_BYTES_MAX, ScannedBlocks},
        index::{BlockPlace, Index},
    },
};

/// A file of the tail. It can be read while it grows, and after it was deleted.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Its name without the extension, unique among all processes.
    pub(crate) name: String,
    path: PathBuf,
    pub(crate) file: File,
    index: RwLock<Index>,
    /// True if it has changed since it was written, so that it is not deleted: there may be more records in it.
    has_changed: bool,
}

impl Segment {
    /// A segment that is new and empty, in a file that does not exist.
    pub(crate) fn create(dir: &Path, name: String) -> Result<Self, Error> {
        let path = dir.join(&name).with_extension(EXTENSION);
        let file = File::options().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(Error::file("create", &path))?;
        sync(dir)?;
        Ok(Self { name, path, file, index: RwLock::default(), has_changed: false })
    }

    /// Reads a segment that was written before, and cuts off an incomplete block at its end. Blocks that have changed
    /// since are left out, and it does not grow any more; a file without any block, or that is too large, is not one of
    /// ours.
    pub(crate) fn recover(path: PathBuf) -> Result<Self, Error> {
        Self::recover_within(path, CHECKED_BYTES_MAX)
    }

    /// The same, with another bound on the bytes of blocks that are checked.
    fn recover_within(path: PathBuf, checked_max: u64) -> Result<Self, Error> {
        let file = File::options().read(true).append(true).open(&path).map_err(Error::file("open", &path))?;
        let ScannedBlocks { index, changed, rest, .. } = blocks::find_within(&file, &path, checked_max)?;
        if rest > 0 {
            tracing::warn!(path = %path.display(), bytes = rest, "the end of history was not written before the stop");
            file.set_len(index.bytes).map_err(Error::file("shorten", &path))?;
        }
        let segment = Self { has_changed: changed > 0, ..Self::with_index(path, file, index) };
        if changed > 0 {
            let path = segment.path.display();
            tracing::error!(%path, bytes = changed, "records of history have changed and are lost");
            // After the next kill, a search that is given up would not find what is written behind them.
            segment.begin_seal()?;
        }
        Ok(segment)
    }

    /// Reads the whole blocks of a segment that may be of a running process, and changes nothing. Returns how many bytes
    /// have changed since they were written, too. None if its records have moved to Parquet files meanwhile.
    pub(crate) fn look(path: &Path) -> Result<Option<(Self, u64)>, Error> {
        // It is renamed once when that begins.
        for path in [path.to_owned(), path.with_extension(SEALING)] {
            if let Some(file) = if_there(File::open(&path).map(Some).map_err(Error::file("open", &path)))? {
                let ScannedBlocks { index, changed, rest, is_begun, .. } = blocks::find(&file, &path)?;
                let changed = changed + if is_begun { 0 } else { rest };
                return Ok(Some((Self::with_index(path, file, index), changed)));
            }
        }
        Ok(None)
    }

    fn with_index(path: PathBuf, file: File, index: Index) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, path, file, index: RwLock::new(index), has_changed: false }
    }

    /// Marks it as one that does not grow any more, also after a restart: the names of its Parquet files follow from
    /// what is in it.
    pub(crate) fn begin_seal(&self) -> Result<(), Error> {
        let sealing = self.sealing();
        if sealing.exists() {
            return Ok(());
        }
        fs::rename(&self.path, &sealing).map_err(Error::file("rename", &self.path))?;
        self.path.parent().map_or(Ok(()), sync)
    }

    /// Returns true if it does not grow any more because sealing has begun.
    pub(crate) fn is_sealing(&self) -> bool {
        self.sealing().exists()
    }

    /// Deletes it once its records are elsewhere. One that has changed is kept aside, unless there are enough.
    pub(crate) fn delete(&self) -> Result<(), Error> {
        let sealing = self.sealing();
        if !self.has_changed || !sealing.exists() {
            return remove(&sealing);
        }
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let kept = list(dir)?.iter().filter(|path| is_damaged(path)).count();
        if kept >= DAMAGED_MAX {
            let path = sealing.display();
            tracing::error!(%path, kept, "a damaged file of history is deleted: too many are kept aside");
            return remove(&sealing);
        }
        let aside = self.path.with_extension(DAMAGED);
        fs::rename(&sealing, &aside).map_err(Error::file("rename", &sealing))?;
        tracing::error!(path = %aside.display(), "a damaged file of history is kept aside: it may have more records");
        sync(dir)
    }

    fn sealing(&self) -> PathBuf {
        self.path.with_extension(SEALING)
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all of its blocks but those that have changed.
    pub(crate) fn read_all(&self) -> Result<Vec<Block>, Error> {
        let places = self.index(|index| index.blocks.clone());
        let unless_damaged = |read| match read {
            Err(Error::Damaged { path, .. }) => {
                tracing::error!(path = %path.display(), "records of history have changed and are lost");
                None
            }
            read => Some(read),
        };
        places.iter().map(|place| self.read(place)).filter_map(unless_damaged).collect()
    }

    /// Reads the index of its blocks as it is now.
    pub(crate) fn index<T>(&self, read: impl FnOnce(&Index) -> T) -> T {
        read(&self.index.read())
    }

    /// Adds blocks that were written to the file.
    pub(crate) fn extend(&self, add: impl FnOnce(&mut Index)) {
        add(&mut self.index.write());
    }

    /// Reads one of its blocks.
    pub(crate) fn read(&self, place: &BlockPlace) -> Result<Block, Error> {
        let mut bytes = vec![0; place.length];
        self.file.read_exact_at(&mut bytes, place.offset).map_err(Error::file("read", &self.path))?;
        let damaged = || Error::Damaged { path: self.path.clone(), source: "a block has changed".into() };
        block::decode(&bytes.into()).ok_or_else(damaged)
    }
}

/// Extension of the names of segments.
const EXTENSION: &str = "tail";
/// Extension of the names of segments while they are sealed.
const SEALING: &str = "sealing";
/// Extension of the names of those that are kept aside.
const DAMAGED: &str = "damaged";
/// Maximum number of files that are kept aside in a directory.
const DAMAGED_MAX: usize = 4;

/// Returns true if the name of a file is that of a segment.
pub(crate) fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION || extension == SEALING)
}

/// Returns true if the name of a file is that of one that is kept aside.
pub(crate) fn is_damaged(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == DAMAGED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::block::{HEADER_BYTES, MAGIC};

    /// A block, and behind what has changed the beginnings of many long ones.
    fn damaged() -> Vec<u8> {
        let mut bytes = Vec::new();
        block::encode(9, 1, b"records", &mut Vec::new(), &mut bytes);
        let mut beginning = [0; HEADER_BYTES];
        beginning[..MAGIC.len()].copy_from_slice(&MAGIC);
        beginning[8..16].copy_from_slice([(1_u32 << 14).to_le_bytes(); 2].as_flattened());
        [&bytes[..], b"changed", &beginning.repeat(1000)].concat()
    }

    #[test]
    fn a_file_whose_search_was_given_up_is_kept_aside_and_not_too_many_are() {
        let (dir, bytes) = (tempfile::tempdir().unwrap(), damaged());
        for number in 0..=DAMAGED_MAX {
            let path = dir.path().join(number.to_string()).with_extension(EXTENSION);
            fs::write(&path, &bytes).unwrap();
            let segment = Segment::recover_within(path.clone(), 1 << 20).unwrap();
            assert_eq!(segment.read_all().unwrap().len(), 1);
            segment.delete().unwrap();
            // It may be tried again after a kill.
            segment.delete().unwrap();
            assert!(!path.exists() && !segment.is_sealing());
            let aside = fs::read(path.with_extension(DAMAGED)).ok();
            assert_eq!(aside, Some(bytes.clone()).filter(|_| number < DAMAGED_MAX));
        }
    }

    #[test]
    fn a_file_that_has_changed_is_kept_aside_and_others_are_deleted() {
        let dir = tempfile::tempdir().unwrap();
        let block = |writer| {
            let mut bytes = Vec::new();
            block::encode(writer, 1, b"records", &mut Vec::new(), &mut bytes);
            bytes
        };
        let (whole, changed) = ([block(1), block(2)].concat(), [block(1), b"changed".to_vec(), block(2)].concat());
        for (name, bytes) in [("whole", &whole), ("changed", &changed)] {
            let path = dir.path().join(name).with_extension(EXTENSION);
            fs::write(&path, bytes).unwrap();
            let segment = Segment::recover(path).unwrap();
            assert_eq!(segment.read_all().unwrap().len(), 2, "{name}");
            segment.begin_seal().unwrap();
            segment.delete().unwrap();
        }
        let aside = dir.path().join("changed").with_extension(DAMAGED);
        assert_eq!(fs::read(&aside).unwrap(), changed);
        assert_eq!(list(dir.path()).unwrap(), [aside]);
    }
}
