//! Removed applications and devices: until the tails of all processes are sealed, their records are only hidden.

use std::{fs, path::Path};

use crate::{
    Error, RecordId,
    directory::{if_there, list, remove, sync_dir},
    record::moment,
};

/// Time that removals are remembered, in days: by then, no tail has the records.
pub(crate) const DAYS: u32 = 30;

/// Applications and devices that were removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removals(pub(crate) Vec<Removal>);

/// An application or a device that was removed, with the last id that went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    pub(crate) app_id: String,
    /// None for all devices.
    pub(crate) dev_id: Option<String>,
    pub(crate) last: RecordId,
}

impl Removals {
    /// Reads what was removed, by any process.
    pub(crate) fn read(dir: &Path) -> Result<Self, Error> {
        let paths = if_there(list(dir))?;
        Ok(Self(paths.iter().filter_map(|path| Removal::read(path)).collect()))
    }

    /// Returns true if a record was removed.
    pub(crate) fn has(&self, id: RecordId, app_id: &[u8], dev_id: &[u8]) -> bool {
        self.0.iter().any(|removal| removal.has(id, app_id, dev_id))
    }

    /// Forgets what was removed more than some days ago.
    pub(crate) fn forget_old(&self, dir: &Path, now: u64, days: u32) -> Result<(), Error> {
        let old = self.0.iter().filter(|removal| removal.last.millis < moment::days_before(now, days));
        old.map(|removal| dir.join(removal.name())).try_for_each(|path| remove(&path))
    }

    /// With those that others have told of.
    pub(crate) fn with(mut self, others: Vec<Removal>) -> Self {
        self.0.extend(others);
        self
    }

    /// Returns true if this removal is known, or a later one of the same application or device.
    pub(crate) fn know(&self, other: &Removal) -> bool {
        self.0.iter().any(|removal| removal.name() == other.name() && removal.last >= other.last)
    }
}

impl Removal {
    /// One with this name.
    pub(crate) fn named(name: &str, last: RecordId) -> Self {
        let (app_id, dev_id) = match name.split_once(',') {
            Some((app_id, dev_id)) => (app_id, Some(dev_id.to_owned())),
            None => (name, None),
        };
        Self { app_id: app_id.to_owned(), dev_id, last }
    }

    /// `<application>`, or `<application>,<device>`.
    pub(crate) fn name(&self) -> String {
        self.dev_id.as_ref().map_or_else(|| self.app_id.clone(), |dev_id| format!("{},{dev_id}", self.app_id))
    }

    /// Returns true if the removal covers a record.
    pub(crate) fn has(&self, id: RecordId, app_id: &[u8], dev_id: &[u8]) -> bool {
        id <= self.last
            && self.app_id.as_bytes() == app_id
            && self.dev_id.as_ref().is_none_or(|removed| removed.as_bytes() == dev_id)
    }

    fn read(path: &Path) -> Option<Self> {
        let last = fs::read_to_string(path).ok()?.parse().ok()?;
        Some(Self::named(path.file_name()?.to_str()?, last))
    }
}

/// Remembers that records are removed.
pub(crate) fn write(dir: &Path, removal: &Removal) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
    let name = removal.name();
    let (path, unfinished) = (dir.join(&name), dir.join(format!("{name}.new")));
    fs::write(&unfinished, removal.last.to_string()).map_err(Error::file("write", &unfinished))?;
    fs::rename(&unfinished, &path).map_err(Error::file("rename", &unfinished))?;
    sync_dir(dir)
}
