//! Tables that follow from the entries, and whether they agree with them.

use redb::{ReadableTable, Table};

/// A table that is written together with the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Derived {
    /// Numbers of keys, in blocks.
    Blocks,
    /// Sizes of tags, in bytes.
    Counted,
}

impl Derived {
    const ALL: [Self; 2] = [Self::Blocks, Self::Counted];

    /// Returns the keys in the table of versions: of the version that it was written with, and of the number of
    /// entries.
    fn keys(self) -> [&'static str; 2] {
        match self {
            Self::Blocks => ["blocks_version", "blocks_entries"],
            Self::Counted => ["counted_version", "counted_entries"],
        }
    }

    /// Returns true if the table was last written together with this version and these entries.
    ///
    /// It was not if an older version of Airlock, which does not have it, has written since.
    pub(super) fn is_current(
        self,
        meta: &impl ReadableTable<&'static str, u64>,
        version: u64,
        entries: u64,
    ) -> Result<bool, redb::Error> {
        for (key, expected) in self.keys().into_iter().zip([version, entries]) {
            if meta.get(key)?.map(|found| found.value()) != Some(expected) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Notes that all of them agree with this version and these entries.
pub(super) fn mark_current(
    meta: &mut Table<'_, &'static str, u64>,
    version: u64,
    entries: u64,
) -> Result<(), redb::Error> {
    for (key, value) in Derived::ALL.iter().flat_map(|derived| derived.keys().into_iter().zip([version, entries])) {
        meta.insert(key, value)?;
    }
    Ok(())
}
