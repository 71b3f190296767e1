//! Deletes what files have of an application or a device.

use types::{AppId, DevId};

use super::Keeper;
use crate::{
    Error, Record,
    directory::{remove, sync_dir},
    record::View,
    sealed::{
        file::SealedFile,
        name::{self, FileName},
        rows::read_all,
        write::{finish, sort, write_file},
    },
};

impl Keeper {
    /// Deletes the files of an application, or writes them again without a device.
    pub(super) fn remove_files(&self, app_id: &AppId, dev_id: Option<&DevId>) -> Result<(), Error> {
        for day in name::days(self.disk.root(), app_id)? {
            for file in day.files()?.files {
                match dev_id {
                    Some(dev_id) => self.remove_device_from(&file, dev_id)?,
                    None => remove(&file.path)?,
                }
            }
            sync_dir(&day.path)?;
        }
        self.delete_empty(app_id)
    }

    /// Files that are damaged stay: what they have of the device cannot be read either.
    fn remove_device_from(&self, file: &FileName, dev_id: &DevId) -> Result<(), Error> {
        let records = match has_device(&file.path, dev_id) {
            Ok(false) | Err(Error::Damaged { .. }) => return Ok(()),
            Ok(true) => read_all(&file.path)?,
            Err(error) => return Err(error),
        };
        let rows: Vec<View<'_>> = records.iter().filter(|record| record.dev_id != *dev_id).map(Record::view).collect();
        if rows.is_empty() {
            return remove(&file.path);
        }
        let unfinished = Self::unfinished(&file.path);
        write_file(&unfinished, &sort(&rows))?;
        // The name stays: it says between which times the records are, and that is still so.
        finish(&unfinished, &file.path)
    }
}

fn has_device(path: &std::path::Path, dev_id: &DevId) -> Result<bool, Error> {
    let file = SealedFile::open(path)?;
    for group in file.groups() {
        let rows = group.device(dev_id.as_str()).map_err(|source| Error::damaged(path, source))?;
        if !rows.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
