//! What was removed: until the tails of all processes are sealed, it is only not shown.

use std::{
    fs,
    path::{Path, PathBuf},
};

use types::{AppId, DevId};

use crate::{
    Error, RecordId,
    directory::{if_there, list, remove, sync_dir},
    record::moment,
};

/// How long it is remembered that something was removed, in days: by then, no tail has it.
const DAYS: u32 = 30;

/// Applications and devices that were removed, each with the last id that went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removals(Vec<Removal>);

#[derive(Clone, Debug)]
struct Removal {
    path: PathBuf,
    app_id: String,
    /// None for all devices.
    dev_id: Option<String>,
    last: RecordId,
}

impl Removals {
    /// Reads what was removed, by any process.
    pub(crate) fn read(dir: &Path) -> Result<Self, Error> {
        let paths = if_there(list(dir))?;
        Ok(Self(paths.into_iter().filter_map(Removal::read).collect()))
    }

    /// Whether a record was removed.
    pub(crate) fn has(&self, id: RecordId, app_id: &[u8], dev_id: &[u8]) -> bool {
        self.0.iter().any(|removal| {
            id <= removal.last
                && removal.app_id.as_bytes() == app_id
                && removal.dev_id.as_ref().is_none_or(|removed| removed.as_bytes() == dev_id)
        })
    }

    /// Forgets what was removed long ago.
    pub(crate) fn forget_old(&self, now: u64) -> Result<(), Error> {
        let is_old = |removal: &&Removal| removal.last.millis < moment::days_before(now, DAYS);
        self.0.iter().filter(is_old).try_for_each(|removal| remove(&removal.path))
    }
}

impl Removal {
    fn read(path: PathBuf) -> Option<Self> {
        let (app_id, dev_id) = match path.file_name()?.to_str()?.split_once(',') {
            Some((app_id, dev_id)) => (app_id.to_owned(), Some(dev_id.to_owned())),
            None => (path.file_name()?.to_str()?.to_owned(), None),
        };
        let last = fs::read_to_string(&path).ok()?.parse().ok()?;
        Some(Self { path, app_id, dev_id, last })
    }
}

/// Remembers that records up to `last` are removed.
pub(crate) fn write(dir: &Path, app_id: &AppId, dev_id: Option<&DevId>, last: RecordId) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
    let name = dev_id.map_or_else(|| app_id.to_string(), |dev_id| format!("{app_id},{dev_id}"));
    let (path, unfinished) = (dir.join(&name), dir.join(format!("{name}.new")));
    fs::write(&unfinished, last.to_string()).map_err(Error::file("write", &unfinished))?;
    fs::rename(&unfinished, &path).map_err(Error::file("rename", &unfinished))?;
    sync_dir(dir)
}
