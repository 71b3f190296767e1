//! The tables of the file inside one write transaction, and what a batch does to them.

use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};

use crate::{
    Batch, Commit, Error, QUEUE_LENGTH_MAX, UnixMillis, Version,
    batch::{Change, Check},
    queue,
    record::{self, NEVER, Record},
};

/// Numbers about the store itself.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The format of the file, in [`META`].
pub(super) const FORMAT_KEY: &str = "format";
/// The last version that was given, in [`META`].
const VERSION_KEY: &str = "version";
/// Key to record.
pub(super) const ENTRIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("entries");
/// When what expires, for the sweep.
const EXPIRY: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("expiry");
/// Queue and id to message.
const MESSAGES: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("messages");
/// Queue, end of lease (zero when never leased) and id, for the next reservation.
const DUE: TableDefinition<'_, (&str, u64, u64), ()> = TableDefinition::new("due");
/// How many messages each queue holds.
const LENGTHS: TableDefinition<'_, &str, u64> = TableDefinition::new("lengths");

/// How many expired entries a transaction removes beyond twice what it changes.
const SWEEP_SPARE: usize = 64;

/// Why a step of a transaction did not answer.
pub(super) enum Fault {
    /// This step is refused and changed nothing; the others go on.
    Refused(Error),
    /// The storage failed, and with it the whole transaction.
    Storage(Box<redb::Error>),
}

/// Everything that one write transaction can change.
pub(super) struct Tables<'txn> {
    meta: Table<'txn, &'static str, u64>,
    entries: Table<'txn, &'static str, &'static [u8]>,
    expiry: Table<'txn, (u64, &'static str), ()>,
    pub(super) messages: Table<'txn, (&'static str, u64), &'static [u8]>,
    pub(super) due: Table<'txn, (&'static str, u64, u64), ()>,
    pub(super) lengths: Table<'txn, &'static str, u64>,
    /// When the transaction takes place.
    pub(super) now: UnixMillis,
    version: u64,
    /// How many changes were made.
    pub(super) changes: usize,
}

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Storage(Box::new(error.into()))
    }
}

impl<'txn> Tables<'txn> {
    /// Opens the tables; those that are missing are created.
    pub(super) fn open(transaction: &'txn WriteTransaction, now: UnixMillis) -> Result<Self, redb::Error> {
        let meta = transaction.open_table(META)?;
        let version = meta.get(VERSION_KEY)?.map_or(0, |version| version.value());
        Ok(Self {
            meta,
            entries: transaction.open_table(ENTRIES)?,
            expiry: transaction.open_table(EXPIRY)?,
            messages: transaction.open_table(MESSAGES)?,
            due: transaction.open_table(DUE)?,
            lengths: transaction.open_table(LENGTHS)?,
            now,
            version,
            changes: 0,
        })
    }

    /// Applies a batch if everything is as it expects.
    pub(super) fn commit(&mut self, batch: &Batch) -> Result<Commit, Fault> {
        for check in &batch.checks {
            if !self.holds(check)? {
                return Ok(Commit::Conflict);
            }
        }
        self.check_room(batch)?;
        for change in &batch.changes {
            self.apply(change)?;
        }
        self.changes += batch.changes.len();
        Ok(Commit::Done)
    }

    /// Removes some of what has expired, and writes down the last version.
    pub(super) fn finish(&mut self) -> Result<(), redb::Error> {
        let limit = SWEEP_SPARE + 2 * self.changes;
        let mut swept = Vec::new();
        for expired in self.expiry.range(..(self.now + 1, ""))?.take(limit) {
            let (found, _) = expired?;
            let (expires, key) = found.value();
            swept.push((expires, key.to_owned()));
        }
        for (expires, key) in swept {
            self.expiry.remove((expires, key.as_str()))?;
            self.entries.remove(key.as_str())?;
        }
        self.meta.insert(VERSION_KEY, self.version)?;
        Ok(())
    }

    /// A number that no other write ever gets.
    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn holds(&self, check: &Check) -> Result<bool, Fault> {
        let found = self.read(check.key.as_str())?.filter(|record| record.is_live(self.now));
        Ok(found.map(|record| record.version) == check.version)
    }

    fn read(&self, key: &str) -> Result<Option<Record>, Fault> {
        let Some(bytes) = self.entries.get(key)?.map(|found| found.value().to_vec()) else { return Ok(None) };
        Record::decode(bytes.into(), key).map(Some).map_err(Fault::Refused)
    }

    /// Refuses the batch before its first change when a queue could not take what it pushes.
    fn check_room(&self, batch: &Batch) -> Result<(), Fault> {
        for queue in batch.pushes() {
            let length = self.lengths.get(queue.as_str())?.map_or(0, |length| length.value());
            let added = batch.pushes().filter(|other| *other == queue).count() as u64;
            if length + added > QUEUE_LENGTH_MAX {
                return Err(Fault::Refused(queue::full(queue)));
            }
        }
        Ok(())
    }

    fn apply(&mut self, change: &Change) -> Result<(), Fault> {
        match change {
            Change::Put { key, value, expires } => self.put(key.as_str(), value, record::kept_expiry(*expires)),
            Change::Delete { key } => self.remove(key.as_str()),
            Change::Push { queue, value } => self.push(queue, value),
        }
    }

    fn put(&mut self, key: &str, value: &[u8], expires: UnixMillis) -> Result<(), Fault> {
        self.remove(key)?;
        let version = Version(self.next_version());
        self.entries.insert(key, Record::encode(version, expires, value).as_slice())?;
        if expires != NEVER {
            self.expiry.insert((expires, key), ())?;
        }
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<(), Fault> {
        let Some(bytes) = self.entries.remove(key)?.map(|found| found.value().to_vec()) else { return Ok(()) };
        // A damaged record may be replaced: refusing it here would leave half of the batch done.
        match Record::decode(bytes.into(), key) {
            Ok(Record { expires, .. }) if expires != NEVER => drop(self.expiry.remove((expires, key))?),
            _ => {}
        }
        Ok(())
    }
}
