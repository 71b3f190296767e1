//! Makes the pages that messages leave unchanged read-only, so that a message cannot change another one unnoticed.

use std::io;
use std::ops::Range;

use rustix::mm::MprotectFlags;

use super::{Access, Mapping};

/// Maximum number of runs of changed pages in a protected memory. The system limits the number of ranges with different
/// access that a process may have; a protected memory has two for each run, and one more.
pub(crate) const RUNS_MAX: usize = 16;

impl Mapping {
    /// Makes all pages read-only that had not changed at the last scan. Returns false, and changes nothing, if the scan
    /// is out of date or found more than [`RUNS_MAX`] runs.
    pub(crate) fn protect_unchanged(&self) -> io::Result<bool> {
        let mut access = self.lock();
        if access.is_scan_stale || access.is_revoked || access.changed.len() > RUNS_MAX {
            return Ok(false);
        }
        access.is_protected = true;
        let starts = access.changed.iter().map(|run| run.end);
        let ends = access.changed.iter().map(|run| run.start);
        let mut unchanged = [0].into_iter().chain(starts).zip(ends.chain([access.open_bytes]));
        let protected = unchanged.try_for_each(|(start, end)| self.protect(start..end.max(start), MprotectFlags::READ));
        if protected.is_err() {
            // Should this fail, too, only a scan can tell what messages change.
            access.is_scan_stale = true;
            self.make_writable(&mut access)?;
        }
        protected.map(|()| true)
    }

    /// Makes all pages writable again.
    pub(crate) fn unprotect(&self) -> io::Result<()> {
        let mut access = self.lock();
        if access.is_protected { self.make_writable(&mut access) } else { Ok(()) }
    }

    /// Returns true if only some of the pages are writable.
    pub(crate) fn is_protected(&self) -> bool {
        self.lock().is_protected
    }

    /// Returns true if the host may write to `range`.
    pub(crate) fn is_writable(&self, range: &Range<usize>) -> bool {
        let access = self.lock();
        let contains = |run: &Range<usize>| run.start <= range.start && range.end <= run.end;
        !access.is_protected || access.changed.iter().any(contains)
    }

    pub(super) fn make_writable(&self, access: &mut Access) -> io::Result<()> {
        self.protect(0..access.open_bytes, MprotectFlags::READ | MprotectFlags::WRITE)?;
        access.is_protected = false;
        Ok(())
    }
}
