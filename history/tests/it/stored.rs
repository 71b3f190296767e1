//! A directory that is only read, beside a process that records there.

use std::{collections::BTreeSet, fs, io::Write, os::unix::fs::PermissionsExt, sync::Arc};

use futures::TryStreamExt;
use history::{Environment, Error, ExportPart, Format, History, RecordId, StoredHistory};

use crate::harness::{Harness, app, everything, segments};

async fn counters(history: &StoredHistory) -> Vec<u32> {
    history.query(everything()).await.unwrap().records.iter().map(|record| record.counter).collect()
}

// Conformance: Commands read a directory of history without a server
#[tokio::test]
async fn records_of_a_running_process_are_read_each_once() {
    let harness = Harness::new();
    let history = harness.open();
    let other = "other-app".parse().unwrap();
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    harness.uplink(&history, "a1", 2).await;
    let last = harness.uplink_of(&history, &other, "b1", 3).await;
    let before = StoredHistory::open(harness.path()).unwrap();
    assert_eq!(before.applications().unwrap(), BTreeSet::from([app(), other.clone()]));
    assert_eq!((counters(&before).await, before.skipped()), (vec![2, 1], &[][..]));
    assert_eq!(before.get(&other, last).await.unwrap().unwrap().counter, 3);
    assert_eq!(before.get(&app(), RecordId::new(0, 0, 0)).await.unwrap(), Err(Vec::new()));
    // What it read of the tail is in files now, too.
    harness.uplink(&history, "a1", 4).await;
    history.seal().await.unwrap();
    assert_eq!(counters(&before).await, [4, 2, 1]);
    harness.uplink(&history, "a1", 5).await;
    assert_eq!(counters(&before).await, [4, 2, 1]);
    let after = StoredHistory::open(harness.path()).unwrap();
    assert_eq!(counters(&after).await, [5, 4, 2, 1]);
    let parts: Vec<_> = after.export(everything(), Format::Csv).try_collect().await.unwrap();
    let bytes = parts.iter().map(|part| match part {
        ExportPart::Bytes(bytes) => &bytes[..],
        ExportPart::Unreadable(files) => panic!("{files:?}"),
    });
    assert_eq!(bytes.collect::<Vec<_>>().concat().iter().filter(|byte| **byte == b'\n').count(), 5);
}

// Conformance: Commands read a directory of history without a server
#[tokio::test]
async fn reading_changes_nothing_also_of_a_block_that_is_being_written() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    let before = segments(&harness);
    let [segment] = &before[..] else { panic!("{before:?}") };
    let block = fs::read(segment).unwrap();
    fs::File::options().append(true).open(segment).unwrap().write_all(&block[..block.len() / 2]).unwrap();
    let foreign = segment.with_file_name("foreign.tail");
    fs::write(&foreign, "not ours").unwrap();
    let stored = StoredHistory::open(harness.path()).unwrap();
    assert_eq!(counters(&stored).await, [1]);
    let skipped: Vec<_> = stored.skipped().iter().map(|skipped| skipped.path.clone()).collect();
    assert_eq!(skipped, std::slice::from_ref(&foreign));
    // One that was kept aside.
    let damaged = segment.with_file_name("some.damaged");
    fs::rename(foreign, &damaged).unwrap();
    let stored = StoredHistory::open(harness.path()).unwrap();
    let skipped: Vec<_> = stored.skipped().iter().map(|skipped| skipped.path.clone()).collect();
    assert_eq!(skipped, [damaged]);
    assert_eq!(fs::read(segment).unwrap(), [&block[..], &block[..block.len() / 2]].concat());
    assert_eq!(segments(&harness).len(), 2);
}

// Conformance: Commands read a directory of history without a server
#[tokio::test]
async fn a_tail_with_a_changed_block_is_named_and_its_other_blocks_are_read() {
    let harness = Harness::new();
    let history = harness.open();
    let mut ends = Vec::new();
    for counter in 0..3 {
        harness.uplink(&history, "a1", counter).await;
        ends.push(fs::metadata(&segments(&harness)[0]).unwrap().len() as usize);
    }
    let segment = segments(&harness).remove(0);
    let bytes = fs::read(&segment).unwrap();
    for (place, found) in [(0, [2, 1]), (ends[0] + 30, [2, 0]), (ends[2] - 1, [1, 0])] {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        fs::write(&segment, changed).unwrap();
        let stored = StoredHistory::open(harness.path()).unwrap();
        assert_eq!(counters(&stored).await, found, "{place} of {}", bytes.len());
        let skipped: Vec<_> = stored.skipped().iter().map(|skipped| skipped.path.clone()).collect();
        assert_eq!(skipped, std::slice::from_ref(&segment), "{place}");
    }
}

#[tokio::test]
async fn a_directory_that_does_not_exist_is_not_created() {
    let harness = Harness::new();
    let dir = harness.path().join("elsewhere");
    assert!(matches!(StoredHistory::open(&dir), Err(Error::File { .. })));
    assert!(!dir.exists());
    fs::create_dir(&dir).unwrap();
    assert!(StoredHistory::open(&dir).unwrap().applications().unwrap().is_empty());
}

#[tokio::test]
async fn only_its_owner_may_read_a_new_directory() {
    let harness = Harness::new();
    let dir = harness.path().join("elsewhere");
    let environment =
        Environment { clock: harness.clock.clone(), random: &harness.random, owner_of: Arc::new(ToString::to_string) };
    let history = History::open(&dir, harness.settings.clone(), environment).unwrap();
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    history.close().await.unwrap();
}
