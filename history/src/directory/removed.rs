//! Removed applications and devices: until the tails of all processes are sealed, their records are only hidden. A
//! removal is pending while files may still have them, so that it is finished after a kill.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    Error, RecordId,
    directory::{Change, NEW, if_there, list, remove, write_whole},
    record::moment,
};

/// Time that removals are remembered, in days: by then, no tail has the records.
pub(crate) const DAYS: u32 = 30;
/// Extension of the names of removals that are pending.
const PENDING: &str = "pending";

/// Applications and devices that were removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removals {
    pub(crate) known: Vec<Removal>,
    /// Those whose records files may still have. Their last ids may be ahead of the clock, as records may be.
    pub(crate) pending: Vec<Removal>,
    /// Files that are being written, or that a killed process has left.
    pub(crate) unfinished: Vec<PathBuf>,
}

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
        let mut removals = Self::default();
        for path in if_there(list(dir))? {
            match path.extension().and_then(|extension| extension.to_str()) {
                None => removals.known.extend(Removal::read(&path)?),
                Some(PENDING) => removals.pending.extend(Removal::read(&path)?),
                Some(NEW) => removals.unfinished.push(path),
                Some(_) => {}
            }
        }
        Ok(removals)
    }

    /// Returns true if a record was removed.
    pub(crate) fn has(&self, id: RecordId, app_id: &[u8], dev_id: &[u8]) -> bool {
        self.known.iter().chain(&self.pending).any(|removal| removal.has(id, app_id, dev_id))
    }

    /// The last id of a device that was removed, alone or with its application.
    pub(crate) fn last(&self, app_id: &str, dev_id: &str) -> Option<RecordId> {
        let all = self.known.iter().chain(&self.pending);
        let of_device =
            |removal: &&Removal| removal.app_id == app_id && removal.dev_id.as_deref().is_none_or(|id| id == dev_id);
        all.filter(of_device).map(|removal| removal.last).max()
    }

    /// Forgets what was removed more than some days ago, and what killed processes have left: they were read after the
    /// change was taken.
    pub(crate) fn forget_old(&self, _change: &Change, dir: &Path, now: u64, days: u32) -> Result<(), Error> {
        self.unfinished.iter().try_for_each(|path| remove(path))?;
        let old = self.known.iter().filter(|removal| removal.last.millis < moment::days_before(now, days));
        old.map(|removal| dir.join(removal.name())).try_for_each(|path| remove(&path))
    }

    /// With those that others have told of.
    pub(crate) fn with(mut self, others: Vec<Removal>) -> Self {
        self.known.extend(others);
        self
    }

    /// Returns true if this removal is known, or a later one of the same application or device.
    pub(crate) fn know(&self, other: &Removal) -> bool {
        self.known.iter().any(|removal| removal.name() == other.name() && removal.last >= other.last)
    }
}

impl Removal {
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

    /// None if it is not there, or is nothing that this crate wrote. One that cannot be read is an error: what was removed
    /// would be there again.
    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let id = if_there(fs::read(path).map_err(Error::file("read", path)))?;
        let last = String::from_utf8_lossy(&id).parse::<RecordId>().ok();
        let name = path.file_stem().and_then(|name| name.to_str());
        Ok(last.zip(name).map(|(last, name)| Self::named(name, last)))
    }
}

/// Remembers that records are removed.
pub(crate) fn write(_change: &Change, dir: &Path, removal: &Removal) -> Result<(), Error> {
    write_id(dir, &removal.name(), removal.last)
}

/// Remembers that files may still have removed records, besides those that they may have already. Returns what is
/// pending then.
pub(crate) fn begin(_change: &Change, dir: &Path, removal: &Removal) -> Result<Removal, Error> {
    let name = pending_name(removal);
    let last = Removal::read(&dir.join(&name))?.map_or(removal.last, |before| before.last.max(removal.last));
    write_id(dir, &name, last)?;
    Ok(Removal { last, ..removal.clone() })
}

/// Forgets that files may still have removed records, unless they may now have more than these.
pub(crate) fn end(_change: &Change, dir: &Path, removal: &Removal) -> Result<(), Error> {
    let path = dir.join(pending_name(removal));
    let is_same = Removal::read(&path)?.is_some_and(|pending| pending.last == removal.last);
    if is_same { remove(&path) } else { Ok(()) }
}

fn pending_name(removal: &Removal) -> String {
    format!("{}.{PENDING}", removal.name())
}

fn write_id(dir: &Path, name: &str, last: RecordId) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
    write_whole(&dir.join(name), &last.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::disk::Disk;

    #[test]
    fn removals_are_read_back_and_a_pending_one_reaches_as_far_as_any_before() {
        let root = tempfile::tempdir().unwrap();
        let disk = Disk::new(root.path().to_owned(), None);
        let (change, dir) = (disk.change().unwrap(), disk.removed_dir());
        let [early, late] = [5, 9].map(|millis| Removal::named("my-app,a1", RecordId::first(millis)));
        assert_eq!(begin(&change, &dir, &late).unwrap(), late);
        assert_eq!(begin(&change, &dir, &early).unwrap(), late);
        write(&change, &dir, &early).unwrap();
        fs::write(dir.join("my-app.new"), RecordId::first(9).to_string()).unwrap();
        let removals = Removals::read(&dir).unwrap();
        assert_eq!((&removals.known[..], &removals.pending[..]), (&[early.clone()][..], &[late.clone()][..]));
        assert!(removals.has(RecordId::first(7), b"my-app", b"a1"));
        assert!(!removals.has(RecordId::first(7), b"my-app", b"b1"));
        assert_eq!(removals.last("my-app", "a1"), Some(RecordId::first(9)));
        assert_eq!([removals.last("my-app", "b1"), removals.last("other", "a1")], [None, None]);
        removals.forget_old(&change, &dir, 9, DAYS).unwrap();
        assert!(!dir.join("my-app.new").exists() && dir.join("my-app,a1").exists());
        // A pending one that was raised meanwhile stays.
        end(&change, &dir, &early).unwrap();
        assert!(Removals::read(&dir).unwrap().has(RecordId::first(7), b"my-app", b"a1"));
        end(&change, &dir, &late).unwrap();
        assert!(!Removals::read(&dir).unwrap().has(RecordId::first(7), b"my-app", b"a1"));
    }

    #[test]
    fn a_removal_that_cannot_be_read_is_not_taken_for_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("foreign"), b"\xff").unwrap();
        assert!(Removals::read(dir.path()).unwrap().known.is_empty());
        // It has a name, but no bytes.
        fs::create_dir(dir.path().join("my-app")).unwrap();
        assert!(matches!(Removals::read(dir.path()), Err(Error::File { what: "read", .. })));
    }
}
