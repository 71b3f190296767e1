//! Size of the entries of each tag, counted in the transactions that change them.

use std::collections::HashMap;

use redb::{Database, ReadableDatabase, ReadableTable, Table, TableDefinition};

use super::positions::split;
use crate::{Error, Tag, Usage, UsageCursor, UsagePage, entry::record::HEADER_BYTES, usage::entry_bytes};

/// Tag to the bytes of its entries. A tag without entries has none.
pub(super) const COUNTED: TableDefinition<'_, &str, u64> = TableDefinition::new("counted");

/// Maximum number of tags of a page.
const PAGE_TAGS: usize = 10_000;

/// The bytes of each tag within a write transaction.
pub(super) struct Counted<'txn> {
    table: Table<'txn, &'static str, u64>,
    /// Numbers of bytes that the transaction adds to its tags, and takes from them.
    changed: HashMap<Box<str>, (u64, u64)>,
}

impl<'txn> Counted<'txn> {
    pub(super) fn new(table: Table<'txn, &'static str, u64>) -> Self {
        Self { table, changed: HashMap::new() }
    }

    /// Counts a record that is stored.
    pub(super) fn add(&mut self, key: &str, record: usize) {
        self.change(key).0 += bytes(key, record);
    }

    /// No longer counts a record.
    pub(super) fn remove(&mut self, key: &str, record: usize) {
        self.change(key).1 += bytes(key, record);
    }

    /// Stores the changed sizes.
    pub(super) fn finish(&mut self) -> Result<(), redb::Error> {
        for (tag, (more, less)) in self.changed.drain() {
            let counted = self.table.get(&*tag)?.map_or(0, |found| found.value());
            match counted.saturating_add(more).saturating_sub(less) {
                0 => drop(self.table.remove(&*tag)?),
                bytes => drop(self.table.insert(&*tag, bytes)?),
            }
        }
        Ok(())
    }

    /// Counts all entries again.
    pub(super) fn rebuild(
        &mut self,
        entries: &impl ReadableTable<&'static str, &'static [u8]>,
    ) -> Result<(), redb::Error> {
        self.table.retain(|_, _| false)?;
        self.changed.clear();
        for found in entries.iter()? {
            let (key, record) = found?;
            // Entries are in the order of their tags.
            if !self.changed.contains_key(split(key.value()).0) {
                self.finish()?;
            }
            self.add(key.value(), record.value().len());
        }
        self.finish()
    }

    fn change(&mut self, key: &str) -> &mut (u64, u64) {
        let (tag, _) = split(key);
        // Most transactions change few tags, so that a name is copied once for many entries.
        if !self.changed.contains_key(tag) {
            self.changed.insert(tag.into(), (0, 0));
        }
        self.changed.entry(tag.into()).or_default()
    }
}

/// A page of all tags, from where another page says.
pub(super) fn page(database: &Database, from: Option<&UsageCursor>) -> Result<UsagePage, Error> {
    let read = || -> Result<Vec<(String, u64)>, redb::Error> {
        let table = database.begin_read()?.open_table(COUNTED)?;
        let from = from.map_or("", |UsageCursor(tag)| tag);
        let rows = table.range(from..)?.take(PAGE_TAGS + 1);
        rows.map(|row| row.map(|(tag, bytes)| (tag.value().to_owned(), bytes.value())).map_err(Into::into)).collect()
    };
    let mut rows = read().map_err(unavailable)?;
    let next = rows.get(PAGE_TAGS).map(|(tag, _)| UsageCursor(tag.clone()));
    rows.truncate(PAGE_TAGS);
    let usage = |(tag, bytes)| Ok(Usage { tag: Tag::try_from(tag)?, bytes });
    Ok(UsagePage { tags: rows.into_iter().map(usage).collect::<Result<_, Error>>()?, next })
}

/// The bytes of some tags.
pub(super) fn of(database: &Database, tags: &[Tag]) -> Result<Vec<u64>, Error> {
    let read = || -> Result<Vec<u64>, redb::Error> {
        let table = database.begin_read()?.open_table(COUNTED)?;
        tags.iter().map(|tag| Ok(table.get(tag.as_str())?.map_or(0, |found| found.value()))).collect()
    };
    read().map_err(unavailable)
}

fn bytes(key: &str, record: usize) -> u64 {
    entry_bytes(key.len(), record.saturating_sub(HEADER_BYTES))
}

fn unavailable(error: redb::Error) -> Error {
    Error::unavailable("read how much is stored", error)
}
