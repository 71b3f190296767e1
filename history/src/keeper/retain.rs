//! Deletes records that are too old, and then the oldest while there are too many.

use std::{collections::BTreeMap, fs, path::Path};

use types::AppId;

use super::{Keeper, PassState};
use crate::{
    Error,
    directory::remove,
    record::moment,
    sealed::name::{self, FileName},
};

/// The files of an application, oldest first, and the bytes of all its records.
struct Held {
    app_id: AppId,
    files: Vec<(u64, FileName)>,
    bytes: u64,
}

impl Keeper {
    pub(super) fn retain(&self, state: &PassState, now: u64) -> Result<(), Error> {
        let (mut all, mut result) = (Vec::new(), Ok(()));
        for app_id in name::applications(self.disk.root())? {
            let mut held = Held { bytes: self.tail_bytes(&app_id), app_id, files: Vec::new() };
            // What fails does not hold up the rest: other days and applications have their bounds, too.
            let listed = held.add_files(self.disk.root());
            result = result.and(listed).and(self.retain_application(&mut held, state, now));
            all.push(held);
        }
        let damaged = self.retain_damaged(state, now, all.iter().map(|held| held.bytes).sum());
        let total = self.retain_total(all.iter_mut());
        all.iter().for_each(|held| self.delete_empty(&held.app_id));
        result.and(damaged).and(total)
    }

    fn retain_application(&self, held: &mut Held, state: &PassState, now: u64) -> Result<(), Error> {
        let oldest = moment::days_before(now, self.bounds.days_max(&held.app_id));
        let bytes_max = self.bounds.application_bytes_max(&held.app_id);
        held.delete_while(|held, file| (state.steadiness.is_steady() && file.last < oldest) || held > bytes_max)
    }

    /// Deletes the oldest records of the owner with the most, while there are too many in all.
    fn retain_total<'a>(&self, all: impl Iterator<Item = &'a mut Held>) -> Result<(), Error> {
        let mut owners: BTreeMap<String, Vec<&mut Held>> = BTreeMap::new();
        all.for_each(|held| owners.entry((self.owner_of)(&held.app_id)).or_default().push(held));
        let bytes = |held: &[&mut Held]| held.iter().map(|held| held.bytes).sum::<u64>();
        let mut total: u64 = owners.values().map(|held| bytes(held)).sum();
        while total > self.bounds.bytes_max() {
            let deletable = owners.values_mut().filter(|held| held.iter().any(|held| held.oldest().is_some()));
            let Some(most) = deletable.max_by_key(|held| bytes(held)) else { return Ok(()) };
            let oldest = most.iter_mut().filter_map(|held| Some((held.oldest()?, held))).min_by_key(|oldest| oldest.0);
            let Some((_, held)) = oldest else { return Ok(()) };
            total -= held.delete_first()?;
        }
        Ok(())
    }

    fn tail_bytes(&self, app_id: &AppId) -> u64 {
        self.disk.tail.iter().map(|tail| tail.bytes_of(app_id.as_str())).sum()
    }

    /// Deletes directories that are empty; others stay.
    pub(super) fn delete_empty(&self, app_id: &AppId) {
        for day in name::days(self.disk.root(), app_id).unwrap_or_default() {
            _ = fs::remove_dir(&day.path);
        }
        _ = fs::remove_dir(name::application_dir(self.disk.root(), app_id.as_str()));
    }
}

impl Held {
    /// Adds the files of all days but those that cannot be listed.
    fn add_files(&mut self, root: &Path) -> Result<(), Error> {
        let mut result = Ok(());
        for day in name::days(root, &self.app_id)? {
            match day.settled_files() {
                Ok(listed) => self.files.extend(listed.files.into_iter().map(|file| (file.bytes(), file))),
                Err(error) => result = result.and(Err(error)),
            }
        }
        self.files.sort_by_key(|(_, file)| (file.last, file.first));
        self.bytes += self.files.iter().map(|(bytes, _)| bytes).sum::<u64>();
        result
    }

    /// Deletes the oldest files as long as they are unwanted: `is_unwanted` gets the bytes that are left.
    fn delete_while(&mut self, is_unwanted: impl Fn(u64, &FileName) -> bool) -> Result<(), Error> {
        while self.files.first().is_some_and(|(_, file)| is_unwanted(self.bytes, file)) {
            self.delete_first()?;
        }
        Ok(())
    }

    /// Returns the time of the last record in the oldest file, in milliseconds since 1970.
    fn oldest(&self) -> Option<u64> {
        self.files.first().map(|(_, file)| file.last)
    }

    fn delete_first(&mut self) -> Result<u64, Error> {
        if self.files.is_empty() {
            return Ok(0);
        }
        let (bytes, file) = self.files.remove(0);
        remove(&file.path)?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Ok(bytes)
    }
}
