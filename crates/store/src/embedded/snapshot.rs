//! Reads everything in one transaction, while others write.

use std::{sync::Arc, thread};

use bytes::Bytes;
use redb::{Database, ReadOnlyTable, ReadableDatabase};

use super::{failure::Failure, guarded, open::OpenDatabase, tables};
use crate::{
    Error, Key, Snapshot, UnixMillis, Version,
    entry::record::Record,
    snapshot::{PART_BYTES_MAX, PART_ENTRIES_MAX, Part, PartSender, StoredEntry},
};

/// The view of one transaction.
pub(super) struct Seen {
    last_version: Version,
    entries: ReadOnlyTable<&'static str, &'static [u8]>,
}

/// Begins the transaction.
pub(super) fn see(database: &Database) -> Result<Seen, Error> {
    let read = || -> Result<Seen, redb::Error> {
        let transaction = database.begin_read()?;
        let last_version = tables::last_version(&transaction.open_table(tables::META)?)?;
        Ok(Seen { last_version, entries: transaction.open_table(tables::ENTRIES)? })
    };
    read().map_err(|error| Error::unavailable("read the store", error))
}

/// Reads on a thread of its own until the end, or until nobody wants more. That keeps the database open.
pub(super) fn read(
    seen: Seen,
    database: Arc<OpenDatabase>,
    failure: Failure,
    now: UnixMillis,
) -> Result<Snapshot, Error> {
    let (parts, snapshot) = Snapshot::new(seen.last_version);
    let reading = thread::Builder::new().name("store-snapshot".to_owned()).spawn(move || {
        let sent = guarded("read the store", || send_entries(&seen.entries, &parts, now));
        let last = sent.map(|()| Part::End).map_err(|error| failure.of_read(error));
        // Its reader may be gone.
        _ = parts.blocking_send(last);
        drop(database);
    });
    reading.map_err(|error| Error::unavailable("start to read the store", error))?;
    Ok(snapshot)
}

/// Returns early if nobody wants more.
fn send_entries(
    entries: &ReadOnlyTable<&'static str, &'static [u8]>,
    parts: &PartSender,
    now: UnixMillis,
) -> Result<(), Error> {
    let unavailable = |error| Error::unavailable("read the store", redb::Error::from(error));
    let (mut part, mut bytes) = (Vec::new(), 0);
    for found in entries.range::<&str>(..).map_err(unavailable)? {
        let (key, value) = found.map_err(unavailable)?;
        let record = Record::decode(Bytes::copy_from_slice(value.value()), key.value())?;
        let Some(entry) = StoredEntry::of(record, Key::try_from(key.value().to_owned())?, now) else { continue };
        bytes += entry.value.len();
        part.push(entry);
        if bytes >= PART_BYTES_MAX || part.len() >= PART_ENTRIES_MAX {
            bytes = 0;
            if parts.blocking_send(Ok(Part::Entries(std::mem::take(&mut part)))).is_err() {
                return Ok(());
            }
        }
    }
    // A reader that is gone needs nothing.
    _ = parts.blocking_send(Ok(Part::Entries(part)));
    Ok(())
}
