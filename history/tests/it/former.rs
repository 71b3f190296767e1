//! Files and tails of earlier versions are read, and merged with new ones.

use std::{fs, time::Duration};

use history::{History, Kind, NewRecord, Query};
use types::{AppId, Clock};

use crate::harness::{Harness, all, dev, files_of, kept};

/// Of a handler that did not keep the time of functions: an event and an uplink.
const FILE: &[u8] = include_bytes!("../fixtures/former.parquet");
const FILE_NAME: &str = "1796080413563-1796080413740-561b61a50000.parquet";
/// The two uplinks that it had not sealed yet when it was killed.
const TAIL: &[u8] = include_bytes!("../fixtures/former.tail");
const TAIL_NAME: &str = "561b61a50001.tail";
/// Half an hour before the end of that day, in milliseconds since 1970.
const LATER_MS: u64 = 1_796_081_400_000;

fn cellar() -> AppId {
    "cellar".parse().unwrap()
}

/// The fuel of all records and the time of their functions, newest first.
async fn costs(history: &History) -> Vec<(u64, Option<u32>)> {
    let records = all(history, Query::of(cellar())).await;
    records.iter().map(|record| (record.fuel, record.microseconds)).collect()
}

#[tokio::test]
async fn files_and_tails_without_the_time_of_functions_are_merged_with_new_ones() {
    let harness = Harness::new();
    for (dir, name, bytes) in [("app=cellar/day=2026-11-30", FILE_NAME, FILE), ("tail/561b61a5", TAIL_NAME, TAIL)] {
        let dir = harness.path().join(dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(name), bytes).unwrap();
    }
    harness.clock.advance(Duration::from_millis(LATER_MS - harness.clock.millis()));
    let history = harness.open();
    let mut expected = vec![(2475, None), (2475, None), (2475, None), (0, None)];
    assert_eq!(costs(&history).await, expected);

    let (app_id, dev_id) = (cellar(), dev("my-device"));
    let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now());
    kept(history.append(&NewRecord { fuel: 2500, microseconds: Some(34), ..plain }).await);
    expected.insert(0, (2500, Some(34)));
    assert_eq!(costs(&history).await, expected);
    history.seal().await.unwrap();
    assert_eq!((costs(&history).await, files_of(&harness, &app_id).len()), (expected.clone(), 2));
    harness.clock.advance(Duration::from_secs(4 * 3600));
    history.maintain().await.unwrap();
    assert_eq!((costs(&history).await, files_of(&harness, &app_id).len()), (expected, 1));
}
