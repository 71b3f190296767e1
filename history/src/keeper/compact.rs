//! Merges the small files of an application and day into one.

use std::path::{Path, PathBuf};

use types::AppId;

use super::{Keeper, PassState, seal::ids};
use crate::{
    Error, Record, Skipped,
    directory::{remove, sync},
    sealed::{
        file::SealedFile,
        name::{self, DayDir, FileName},
        replaced,
        rows::read_all,
        write::{Row, finish, sort, write_copy},
    },
};

/// A file is small below this, in bytes.
const SMALL_BYTES: u64 = 2 << 20;
/// Number of small files of a day from which they are merged.
const SMALL_FILES_MAX: usize = 8;
/// Bytes of files merged at once, and of their records, which are in memory: rows of a few bytes need hundreds there,
/// mostly for what each record has beside its values.
const MERGED_BYTES_MAX: u64 = 8 << 20;
const MERGED_RECORD_BYTES_MAX: u64 = 64 << 20;
/// Time after its end when a day is merged in any case, in milliseconds: late records are sealed by then.
const SETTLED_MS: u64 = 2 * 3600 * 1000;

impl Keeper {
    /// Merges small files of all applications, and ends what a killed process has begun.
    pub(super) fn compact(&self, state: &mut PassState, now: u64) -> Result<(), Error> {
        let mut result = Ok(());
        for app_id in name::applications(self.disk.root())? {
            result = result.and(self.compact_application(&app_id, state, now));
        }
        result
    }

    fn compact_application(&self, app_id: &AppId, state: &mut PassState, now: u64) -> Result<(), Error> {
        // A day that fails does not hold up the others.
        let mut result = Ok(());
        for day in name::days(self.disk.root(), app_id)? {
            result = result.and(self.compact_day((app_id, &day), state, now));
        }
        result
    }

    fn compact_day(&self, (app_id, day): (&AppId, &DayDir), state: &mut PassState, now: u64) -> Result<(), Error> {
        let files = day.settled_files()?;
        // Nobody else writes now: these are from processes that were killed.
        files.unfinished.iter().try_for_each(|path| remove(path))?;
        let mut small: Vec<_> = files.files.into_iter().map(|file| (file.bytes(), file)).collect();
        small.retain(|(bytes, _)| *bytes < SMALL_BYTES);
        let is_over = now > day.end.saturating_add(SETTLED_MS);
        while small.len() >= if is_over { 2 } else { SMALL_FILES_MAX } {
            let batch = batch(&mut small, MERGED_BYTES_MAX.min(self.bounds.file_bytes_max(app_id)));
            if batch.len() > 1 {
                self.merge(day, &batch, &self.origin(state))?;
            }
        }
        Ok(())
    }

    /// Merges files into one. Those that cannot be read stay as they are: queries name them.
    fn merge(&self, day: &DayDir, files: &[FileName], origin: &str) -> Result<(), Error> {
        let mut records: Vec<Record> = Vec::new();
        let mut merged: Vec<PathBuf> = Vec::new();
        let (mut record_bytes, mut unchecked) = (0, 0);
        for file in files {
            match read_all(&file.path) {
                Ok((read, read_unchecked)) => {
                    record_bytes += read.iter().map(|record| record.memory_bytes() as u64).sum::<u64>();
                    // Dictionaries may be the texts of many records: the rest has its turn once there are more files.
                    if record_bytes > MERGED_RECORD_BYTES_MAX && !merged.is_empty() {
                        break;
                    }
                    records.extend(read);
                    unchecked += read_unchecked;
                    merged.push(file.path.clone());
                }
                Err(error) => _ = Skipped::of(error)?,
            }
        }
        records.sort_by_key(|record| record.id);
        records.dedup_by_key(|record| record.id);
        let rows = sort(&records.iter().collect::<Vec<_>>());
        let Some((first, last)) = ids(&rows).filter(|_| merged.len() > 1) else { return Ok(()) };
        let path = FileName::new(&day.path, first, last, origin).path;
        self.replace(&merged, &path, (rows.as_slice(), unchecked))
    }

    /// Writes a file in place of others in its directory, as one step for readers and for kills. So many rows of the
    /// others, or fewer, have no checksums.
    pub(super) fn replace(
        &self,
        replaced: &[PathBuf],
        path: &Path,
        (rows, unchecked): (&[impl Row], u64),
    ) -> Result<(), Error> {
        let (unfinished, unchecked) = (Self::unfinished(path), unchecked.min(rows.len() as u64));
        if let Err(error) = write_copy(&unfinished, rows, unchecked).and_then(|()| sync(&unfinished)) {
            // On a full disk it would keep the room that others need.
            _ = remove(&unfinished);
            return Err(error);
        }
        replaced::write(path, replaced)?;
        {
            let _moving = self.disk.moving();
            finish(&unfinished, path)?;
        }
        path.parent().map_or(Ok(()), sync)?;
        replaced::delete(path)
    }

    /// Returns the suffix of the name of a file that replaces others.
    pub(super) fn origin(&self, state: &mut PassState) -> String {
        state.merged = state.merged.saturating_add(1);
        format!("{:08x}m{:04x}", self.writer, state.merged)
    }
}

/// Takes files until they are large enough together.
fn batch(small: &mut Vec<(u64, FileName)>, bytes_max: u64) -> Vec<FileName> {
    let (mut bytes, mut record_bytes) = (0, 0_u64);
    let count = small.iter().take_while(|(size, file)| {
        bytes += size;
        // One that cannot be opened is not merged.
        let file_record_bytes = SealedFile::read(&file.path, |file| Ok(Ok(file.record_bytes()))).unwrap_or(0);
        record_bytes = file_record_bytes.saturating_add(record_bytes);
        bytes <= bytes_max && record_bytes <= MERGED_RECORD_BYTES_MAX
    });
    let count = count.count().max(1);
    small.drain(..count).map(|(_, file)| file).collect()
}
