//! How much is kept.

use std::collections::BTreeMap;

use types::AppId;

use crate::{
    Error,
    directory::if_there,
    disk::Disk,
    sealed::name::{FileName, applications, days},
};

/// How much is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes on disk of each application.
    pub applications: BTreeMap<AppId, u64>,
}

impl Usage {
    /// Adds up files, and what this process has not sealed yet.
    pub(crate) fn of(disk: &Disk) -> Result<Self, Error> {
        let mut usage = Self::default();
        for app_id in if_there(applications(disk.root()))? {
            for day in days(disk.root(), &app_id)? {
                let bytes: u64 = day.files()?.files.iter().map(FileName::bytes).sum();
                usage.add(app_id.clone(), bytes);
            }
        }
        for segment in disk.tail.iter().flat_map(|tail| tail.segments()) {
            let charged = segment.index(|index| index.applications.clone());
            charged.into_iter().for_each(|(id, bytes)| id.parse().into_iter().for_each(|id| usage.add(id, bytes)));
        }
        Ok(usage)
    }

    fn add(&mut self, app_id: AppId, bytes: u64) {
        *self.applications.entry(app_id).or_default() += bytes;
    }
}
