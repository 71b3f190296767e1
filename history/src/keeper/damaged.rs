//! Counts files of the tail that were kept aside, and deletes them once they are too old or there is too much.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use metrics::{describe_gauge, gauge};

use super::{Keeper, PassState};
use crate::{
    Error,
    directory::{if_there, list, remove},
    record::moment,
    tail::{disk::Disk, segment::is_damaged},
};

const FILES: &str = "airlock_history_damaged_files";

/// A file that is kept aside.
struct DamagedFile {
    path: PathBuf,
    bytes: u64,
    /// When it was last written, in milliseconds since 1970: its records are not later.
    written: u64,
}

impl Keeper {
    /// Tells operators of those that were there before the start.
    pub(crate) fn count_damaged(&self) -> Result<(), Error> {
        describe_gauge!(FILES, "Files of history that have changed and are kept aside, as they may have more records");
        tell(damaged_files(&Disk::tail_dir(self.disk.root()))?.len());
        Ok(())
    }

    /// Deletes those that are too old for any application, and then the oldest while there is too much with the bytes of
    /// all `others`: what may be in them is found by nobody, so they go before what is.
    pub(super) fn retain_damaged(&self, state: &PassState, now: u64, others: u64) -> Result<(), Error> {
        let oldest = moment::days_before(now, self.bounds.days_max_of_all());
        let mut files = damaged_files(&Disk::tail_dir(self.disk.root()))?;
        let mut bytes = others + files.iter().map(|file| file.bytes).sum::<u64>();
        while let Some(file) = files.front() {
            let is_old = state.steadiness.is_steady() && file.written < oldest;
            if !is_old && bytes <= self.bounds.bytes_max() {
                break;
            }
            remove(&file.path)?;
            let reason = if is_old { "it is too old" } else { "there is too much" };
            tracing::warn!(path = %file.path.display(), reason, "a damaged file of history is deleted");
            bytes = bytes.saturating_sub(file.bytes);
            files.pop_front();
        }
        tell(files.len());
        Ok(())
    }
}

fn tell(files: usize) {
    gauge!(FILES).set(files as f64);
}

/// Those of all processes, the oldest first.
fn damaged_files(tail_dir: &Path) -> Result<VecDeque<DamagedFile>, Error> {
    let mut files = Vec::new();
    for dir in if_there(list(tail_dir))?.into_iter().filter(|path| path.is_dir()) {
        for path in if_there(list(&dir))?.into_iter().filter(|path| is_damaged(path)) {
            files.extend(if_there(damaged_file(path).map(Some))?);
        }
    }
    files.sort_by_key(|file: &DamagedFile| file.written);
    Ok(files.into())
}

fn damaged_file(path: PathBuf) -> Result<DamagedFile, Error> {
    let metadata = fs::metadata(&path).and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
    let (bytes, modified) = metadata.map_err(Error::file("read", &path))?;
    let written = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Ok(DamagedFile { path, bytes, written: u64::try_from(written).unwrap_or(u64::MAX) })
}
