//! Deletes what files have of an application or a device.

use parquet::errors::Result as ParquetResult;
use server::status::ErrorChain;
use types::{AppId, DevId};

use super::{Keeper, PassState, seal::ids};
use crate::{
    Error, Record, RecordId,
    directory::{
        Change, remove,
        removed::{self, Removal},
        sync,
    },
    sealed::{
        file::SealedFile,
        name::{self, DayDir, FileName},
        rows::read_all,
        write::sort,
    },
};

impl Keeper {
    /// Deletes what is recorded so far.
    pub(crate) fn remove(&self, app_id: &AppId, dev_id: Option<&DevId>) -> Result<(), Error> {
        let mut state = self.state.lock();
        let change = self.disk.change()?;
        let last = RecordId::last(self.now());
        let removal = Removal { app_id: app_id.to_string(), dev_id: dev_id.map(DevId::to_string), last };
        // Records of a clock that was ahead have later ids. They are covered only while this is pending: a device that
        // gets the same id again is another one.
        let last = self.last_id(app_id).map_or(last, |newest| newest.max(last));
        let pending = Removal { last, ..removal.clone() };
        let pending = self.begin_removal(&change, &pending, &removal)?;
        let finished = self.finish_removal(&change, &pending, &mut state);
        self.wake_uploads();
        finished
    }

    /// The highest id that a record of an application can have here. What cannot be listed cannot be deleted either.
    fn last_id(&self, app_id: &AppId) -> Option<RecordId> {
        let days = name::days(self.disk.root(), app_id).unwrap_or_default();
        let files = days.iter().filter_map(|day| day.files().ok()).flat_map(|files| files.files);
        let newest = self.disk.tail.iter().filter_map(|tail| tail.last());
        files.map(|file| file.last_id()).chain(newest).max()
    }

    /// Remembers a removal. Returns what is pending of it, and of those before it.
    pub(super) fn begin_removal(
        &self,
        change: &Change,
        pending: &Removal,
        removal: &Removal,
    ) -> Result<Removal, Error> {
        // First, so that a process that is killed leaves nothing that is not deleted later.
        let pending = removed::begin(change, &self.disk.removed_dir(), pending)?;
        removed::write(change, &self.disk.removed_dir(), removal)?;
        Ok(pending)
    }

    /// Finishes removals that are pending since a kill or a failure.
    pub(super) fn finish_removals(&self, state: &mut PassState) -> Result<(), Error> {
        let change = self.disk.change()?;
        // One that fails does not hold up the others.
        let mut result = Ok(());
        for removal in self.disk.removals()?.pending {
            result = result.and(self.finish_removal(&change, &removal, state));
        }
        result
    }

    /// Nobody else can end it before the tail is sealed: only a pending one covers records that are ahead of the clock.
    fn finish_removal(&self, change: &Change, removal: &Removal, state: &mut PassState) -> Result<(), Error> {
        let files = self.remove_files(removal, state);
        files.and(self.seal_removed(change, removal, state))?;
        self.make_known(change, removal)?;
        removed::end(change, &self.disk.removed_dir(), removal)
    }

    /// Remembers a removal that a killed process has only begun: the tails of others may have its records.
    fn make_known(&self, change: &Change, removal: &Removal) -> Result<(), Error> {
        let last = removal.last.min(RecordId::last(self.now()));
        let removal = Removal { last, ..removal.clone() };
        if self.disk.removals()?.know(&removal) {
            return Ok(());
        }
        removed::write(change, &self.disk.removed_dir(), &removal)
    }

    /// Deletes the files of an application, or writes those that also have others' records again.
    fn remove_files(&self, removal: &Removal, state: &mut PassState) -> Result<(), Error> {
        // Nothing else has files.
        let Ok(app_id) = removal.app_id.parse::<AppId>() else { return Ok(()) };
        // A day or a file that cannot be read does not hold up the others.
        let mut result = Ok(());
        for day in name::days(self.disk.root(), &app_id)? {
            result = result.and(self.remove_from_day(&day, removal, state));
        }
        self.delete_empty(&app_id);
        result
    }

    fn remove_from_day(&self, day: &DayDir, removal: &Removal, state: &mut PassState) -> Result<(), Error> {
        let mut result = Ok(());
        for file in day.settled_files()?.files {
            result = result.and(match &removal.dev_id {
                None if file.last_id() <= removal.last => remove(&file.path),
                _ => self.remove_from(day, &file, removal, state),
            });
        }
        result.and(sync(&day.path))
    }

    /// Files that are damaged stay, and are named: what they have of the device cannot be read either.
    fn remove_from(
        &self,
        day: &DayDir,
        file: &FileName,
        removal: &Removal,
        state: &mut PassState,
    ) -> Result<(), Error> {
        let (records, unchecked) = match read_if_may_have(file, removal) {
            Err(error @ Error::Damaged { .. }) => {
                tracing::warn!(error = %ErrorChain(&error), "a file of history may still have what was removed");
                return Ok(());
            }
            records => records?,
        };
        let is_removed = |record: &&Record| {
            removal.has(record.id, record.app_id.as_str().as_bytes(), record.dev_id.as_str().as_bytes())
        };
        let rows: Vec<_> = records.iter().filter(|record| !is_removed(record)).collect();
        if rows.len() == records.len() {
            return Ok(());
        }
        let Some((first, last)) = ids(&rows) else { return remove(&file.path) };
        // Under another name, because no file changes: copies of it may be elsewhere.
        let path = FileName::new(&day.path, first, last, &self.origin(state)).path;
        self.replace(std::slice::from_ref(&file.path), &path, (sort(&rows).as_slice(), unchecked))
    }
}

/// The records of a file, or none if no removed ones can be among them, and how many have no checksums.
fn read_if_may_have(file: &FileName, removal: &Removal) -> Result<(Vec<Record>, u64), Error> {
    if may_have(file, removal)? { read_all(&file.path) } else { Ok((Vec::new(), 0)) }
}

/// Returns true if a file can have removed records, as far as that is quickly seen.
fn may_have(file: &FileName, removal: &Removal) -> Result<bool, Error> {
    let Some(dev_id) = removal.dev_id.as_ref().filter(|_| file.first_id() <= removal.last) else {
        return Ok(file.first_id() <= removal.last);
    };
    SealedFile::read(&file.path, |opened| Ok(may_have_device(opened, dev_id)))
}

fn may_have_device(file: &SealedFile, dev_id: &str) -> ParquetResult<bool> {
    for group in file.groups() {
        if !group.device(dev_id)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
