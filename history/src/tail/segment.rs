//! A file of the tail, whose blocks an index finds.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
};

use crate::{
    Error,
    directory::{if_there, remove, sync},
    tail::{
        block::{self, Block},
        blocks::{self, Found},
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
}

impl Segment {
    /// A segment that is new and empty, in a file that does not exist.
    pub(crate) fn create(dir: &Path, name: String) -> Result<Self, Error> {
        let path = dir.join(&name).with_extension(EXTENSION);
        let file = File::options().read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(Error::file("create", &path))?;
        sync(dir)?;
        Ok(Self { name, path, file, index: RwLock::default() })
    }

    /// Reads a segment that was written before, and cuts off an incomplete block at its end. Blocks that have changed
    /// since are left out, and it does not grow any more; a file without any block, or that is too large, is not one of
    /// ours.
    pub(crate) fn recover(path: PathBuf) -> Result<Self, Error> {
        let file = File::options().read(true).append(true).open(&path).map_err(Error::file("open", &path))?;
        let Found { index, changed, rest, .. } = blocks::find(&file, &path)?;
        if rest > 0 {
            tracing::warn!(path = %path.display(), bytes = rest, "the end of history was not written before the stop");
            file.set_len(index.bytes).map_err(Error::file("shorten", &path))?;
        }
        let segment = Self::with_index(path, file, index);
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
                let Found { index, changed, rest, is_begun } = blocks::find(&file, &path)?;
                let changed = changed + if is_begun { 0 } else { rest };
                return Ok(Some((Self::with_index(path, file, index), changed)));
            }
        }
        Ok(None)
    }

    fn with_index(path: PathBuf, file: File, index: Index) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { name, path, file, index: RwLock::new(index) }
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

    /// Deletes it once its records are elsewhere.
    pub(crate) fn delete(&self) -> Result<(), Error> {
        remove(&self.sealing())
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
        read(&self.index.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds blocks that were written to the file.
    pub(crate) fn extend(&self, add: impl FnOnce(&mut Index)) {
        add(&mut self.index.write().unwrap_or_else(PoisonError::into_inner));
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

/// Returns true if the name of a file is that of a segment.
pub(crate) fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION || extension == SEALING)
}
