//! The tables of the file, and how a batch changes them within one write transaction.

mod derived;

use redb::{ReadableTable, ReadableTableMetadata, Table, TableDefinition, WriteTransaction};

use self::derived::Derived;
use super::{
    counted::{self, Counted},
    positions::{self, Positions},
};
use crate::{
    Batch, Commit, Error, StoredEntry, UnixMillis, Version,
    batch::{Change, Check},
    clock::steadiness::CommitTime,
    entry::record::{self, NEVER, Record},
};

/// Format, version and time.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The format of the file, in [`META`].
pub(super) const FORMAT_KEY: &str = "format";
/// The last version assigned, in [`META`].
const VERSION_KEY: &str = "version";
/// The last time that could be believed, in [`META`].
const TIME_KEY: &str = "time";
/// Key to record.
pub(super) const ENTRIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("entries");
/// Expiry and key, for removing expired entries.
const EXPIRY: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("expiry");
/// Maximum number of expired entries that a transaction removes, in addition to two per change.
const SWEEP_SPARE: usize = 64;

/// Reasons why a step of a transaction failed.
pub(super) enum Fault {
    /// The step was refused and changed nothing; other steps of the transaction are not affected.
    Refused(Error),
    /// Storage failed, and with it the whole transaction.
    Storage(Box<redb::Error>),
}

/// The tables within one write transaction.
pub(super) struct Tables<'txn> {
    meta: Table<'txn, &'static str, u64>,
    entries: Table<'txn, &'static str, &'static [u8]>,
    expiry: Table<'txn, (u64, &'static str), ()>,
    positions: Positions<'txn>,
    counted: Counted<'txn>,
    time: CommitTime,
    version: u64,
    /// The number of changes so far.
    pub(super) changes: usize,
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Storage(Box::new(error.into()))
    }
}

impl<'txn> Tables<'txn> {
    /// Opens the tables; creates missing ones.
    pub(super) fn open(transaction: &'txn WriteTransaction, time: CommitTime) -> Result<Self, redb::Error> {
        let meta = transaction.open_table(META)?;
        let Version(version) = last_version(&meta)?;
        Ok(Self {
            meta,
            entries: transaction.open_table(ENTRIES)?,
            expiry: transaction.open_table(EXPIRY)?,
            positions: Positions::new(transaction.open_table(positions::BLOCKS)?),
            counted: Counted::new(transaction.open_table(counted::COUNTED)?),
            time,
            version,
            changes: 0,
        })
    }

    /// Applies a batch if its conditions hold.
    pub(super) fn commit(&mut self, batch: &Batch) -> Result<Commit, Fault> {
        for check in &batch.checks {
            if !self.holds(check)? {
                return Ok(Commit::Conflict);
            }
        }
        for change in &batch.changes {
            self.apply(change)?;
        }
        self.changes += batch.changes.len();
        Ok(Commit::Done)
    }

    /// Writes an entry with the version that it had. Its key is counted when all entries are there.
    pub(super) fn restore(&mut self, entry: &StoredEntry) -> Result<(), redb::Error> {
        let (key, expires) = (entry.key.as_str(), record::stored_expiry(entry.expires));
        self.entries.insert(key, Record::encode(entry.version, expires, &entry.value).as_slice())?;
        if expires != NEVER {
            self.expiry.insert((expires, key), ())?;
        }
        Ok(())
    }

    /// Removes some expired entries and stores the last version and time.
    pub(super) fn finish(&mut self) -> Result<(), redb::Error> {
        let limit = SWEEP_SPARE + 2 * self.changes;
        let mut swept = Vec::new();
        for expired in self.expiry.range(..(self.time.believed + 1, ""))?.take(limit) {
            let (found, _) = expired?;
            let (expires, key) = found.value();
            swept.push((expires, key.to_owned()));
        }
        for (_, key) in swept {
            self.remove(&key)?;
        }
        self.counted.finish()?;
        self.meta.insert(VERSION_KEY, self.version)?;
        if self.time.is_steady() {
            self.meta.insert(TIME_KEY, self.time.now)?;
        }
        derived::mark_current(&mut self.meta, self.version, self.entries.len()?)
    }

    /// Counts entries again that another version of Airlock has written without counting. Returns true if there were
    /// any.
    pub(super) fn correct_derived(&mut self) -> Result<bool, redb::Error> {
        let entries = self.entries.len()?;
        let is_current = |derived: Derived| derived.is_current(&self.meta, self.version, entries);
        let (blocks, counted) = (is_current(Derived::Blocks)?, is_current(Derived::Counted)?);
        if !blocks {
            self.positions.rebuild(&self.entries)?;
        }
        if !counted {
            self.counted.rebuild(&self.entries)?;
        }
        derived::mark_current(&mut self.meta, self.version, entries)?;
        Ok(!blocks || !counted)
    }

    /// A version that no other write gets.
    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn holds(&self, check: &Check) -> Result<bool, Fault> {
        let found = self.read(check.key.as_str())?.filter(|record| record.is_live(self.time.now));
        Ok(found.map(|record| record.version) == check.version)
    }

    fn read(&self, key: &str) -> Result<Option<Record>, Fault> {
        let Some(bytes) = self.entries.get(key)?.map(|found| found.value().to_vec()) else { return Ok(None) };
        Record::decode(bytes.into(), key).map(Some).map_err(Fault::Refused)
    }

    fn apply(&mut self, change: &Change) -> Result<(), Fault> {
        match change {
            Change::Put { key, value, expires } => self.put(key.as_str(), value, record::stored_expiry(*expires))?,
            Change::Delete { key } => self.remove(key.as_str())?,
        }
        Ok(())
    }

    fn put(&mut self, key: &str, value: &[u8], expires: UnixMillis) -> Result<(), redb::Error> {
        let record = Record::encode(Version(self.next_version()), expires, value);
        self.counted.add(key, record.len());
        let old = self.entries.insert(key, record.as_slice())?.map(|found| seen(found.value()));
        let old = old.map(|(expires, bytes)| {
            self.counted.remove(key, bytes);
            expires
        });
        if let Some(old) = old.filter(|old| *old != NEVER) {
            self.expiry.remove((old, key))?;
        }
        if expires != NEVER {
            self.expiry.insert((expires, key), ())?;
        }
        let is_expiring = |expires: UnixMillis| expires != NEVER;
        match old.map(is_expiring) {
            Some(old) if old == is_expiring(expires) => return Ok(()),
            Some(old) => self.positions.remove(key, old)?,
            None => {}
        }
        self.positions.add(key, is_expiring(expires), &self.entries)
    }

    fn remove(&mut self, key: &str) -> Result<(), redb::Error> {
        let Some((old, bytes)) = self.entries.remove(key)?.map(|found| seen(found.value())) else { return Ok(()) };
        self.counted.remove(key, bytes);
        if old != NEVER {
            self.expiry.remove((old, key))?;
        }
        self.positions.remove(key, old != NEVER)
    }
}

/// Returns the expiry of a record, and its size in bytes.
fn seen(record: &[u8]) -> (UnixMillis, usize) {
    (record::expiry_in(record), record.len())
}

/// The last time that could be believed, if there is one.
pub(super) fn last_time(meta: &impl ReadableTable<&'static str, u64>) -> Result<Option<UnixMillis>, redb::Error> {
    Ok(meta.get(TIME_KEY)?.map(|time| time.value()))
}

/// The last version assigned.
pub(super) fn last_version(meta: &impl ReadableTable<&'static str, u64>) -> Result<Version, redb::Error> {
    Ok(Version(meta.get(VERSION_KEY)?.map_or(0, |version| version.value())))
}

/// Writes the time at which a file is created.
pub(super) fn write_time(meta: &mut Table<'_, &'static str, u64>, now: UnixMillis) -> Result<(), redb::Error> {
    meta.insert(TIME_KEY, now).map(drop).map_err(Into::into)
}

/// Writes the format and the last version of a restored file.
pub(super) fn write_meta(
    meta: &mut Table<'_, &'static str, u64>,
    format: u64,
    last_version: Version,
) -> Result<(), redb::Error> {
    meta.insert(FORMAT_KEY, format)?;
    meta.insert(VERSION_KEY, last_version.0)?;
    Ok(())
}
