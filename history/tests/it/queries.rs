//! Queries find the wanted records, in order and in pages.

use std::time::Duration;

use history::{Kind, LastHeard, NewRecord, Outcome, Query, Record, RecordId};
use types::{Clock, DevId, Timestamp};

use crate::harness::{Harness, all, app, counters, dev, everything, kept};

#[tokio::test]
async fn a_record_is_found_as_it_was_appended() {
    let harness = Harness::new();
    let history = harness.open();
    let (app_id, dev_id) = (app(), dev("full"));
    let kind = Kind::Event("down/sent".to_owned());
    let received = Timestamp::from_nanos(1_790_000_000_123_456_789);
    let new = NewRecord {
        port: 7,
        counter: u32::MAX,
        confirmed: true,
        is_retry: true,
        payload: b"\x00\xff",
        metadata: r#"{"time":"now"}"#,
        extra: r#"{"variables":{}}"#,
        seed: Some(u64::MAX),
        functions: Some([9; 32]),
        version: Some(3),
        limits: Some([5; 8]),
        outcome: Outcome::Failed,
        result: r#"{"a":"ä"}"#,
        normalized: "[]",
        failure: Some("boom"),
        logs: r#"[{"level":"info"}]"#,
        warnings: r#"["low"]"#,
        fuel: 12_345,
        microseconds: Some(34),
        revision: 1,
        corrects: Some("0".repeat(28).parse().unwrap()),
        ..NewRecord::new(&app_id, &dev_id, &kind, received)
    };
    let id = kept(history.append(&new).await);
    let record = history.get(&app_id, id).await.unwrap().unwrap();
    check(&record, id, &new);
    history.seal().await.unwrap();
    check(&history.get(&app_id, id).await.unwrap().unwrap(), id, &new);
    assert_eq!(history.get(&"other".parse().unwrap(), id).await.unwrap(), Err(Vec::new()));
    history.close().await.unwrap();
}

fn check(record: &Record, id: RecordId, new: &NewRecord<'_>) {
    let (received, kind) = (new.received, new.kind);
    assert_eq!((record.id, record.received, &record.kind, record.port), (id, received, kind, 7));
    assert_eq!((record.counter, record.confirmed, record.is_retry), (u32::MAX, true, true));
    assert_eq!((&record.payload[..], record.seed, record.functions), (new.payload, new.seed, new.functions));
    assert_eq!((record.version, record.limits), (new.version, new.limits));
    assert_eq!((record.fuel, record.microseconds), (new.fuel, new.microseconds));
    assert_eq!((&record.metadata[..], &record.extra[..]), (new.metadata, new.extra));
    assert_eq!((&record.result[..], &record.normalized[..]), (new.result, new.normalized));
    assert_eq!((record.failure.as_deref(), &record.logs[..]), (new.failure, new.logs));
    assert_eq!((&record.warnings[..], record.outcome, record.revision), (new.warnings, Outcome::Failed, 1));
    assert_eq!(record.corrects, new.corrects);
}

#[tokio::test]
async fn pages_follow_each_other_without_gaps_while_more_arrives() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..10 {
        harness.uplink(&history, "a1", counter).await;
    }
    let first = history.query(Query { limit: 4, ..everything() }).await.unwrap();
    harness.uplink(&history, "a1", 10).await;
    let second = history.query(Query { limit: 6, before: first.next, ..everything() }).await.unwrap();
    let shown: Vec<_> = first.records.iter().chain(&second.records).map(|record| record.counter).collect();
    assert_eq!(shown, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(second.next, None);
    let oldest = history.query(Query { limit: 2, oldest_first: true, ..everything() }).await.unwrap();
    let rest = Query { after: oldest.next, oldest_first: true, ..everything() };
    assert_eq!(counters(&history, rest).await, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[tokio::test]
async fn every_filter_leaves_out_what_is_not_asked_for() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..4 {
        harness.uplink(&history, "a1", counter).await;
        harness.uplink(&history, "b1", counter).await;
    }
    let times: Vec<_> = all(&history, everything()).await.iter().rev().map(|record| record.received).collect();
    check_filters(&history, &times).await;
    history.seal().await.unwrap();
    check_filters(&history, &times).await;
}

async fn check_filters(history: &history::History, times: &[Timestamp]) {
    for (query, expected) in [
        (Query { dev_id: Some(dev("a1")), ..everything() }, vec![3, 2, 1, 0]),
        (Query { dev_id: Some(dev("c1")), ..everything() }, vec![]),
        (Query { since: Some(times[6]), ..everything() }, vec![3, 3]),
        (Query { until: Some(times[2]), ..everything() }, vec![0, 0]),
        (Query { port: Some(2), ..everything() }, vec![2, 2]),
        (Query { kind: Some(Kind::Uplink), port: Some(1), ..everything() }, vec![1, 1]),
        (Query { kind: Some(Kind::Event("down/sent".to_owned())), ..everything() }, vec![]),
        (Query { failed_only: true, ..everything() }, vec![]),
        (Query { text: Some("\"b1\"".to_owned()), ..everything() }, vec![3, 2, 1, 0]),
        (Query { field: Some("fields.level >= 2".parse().unwrap()), ..everything() }, vec![3, 3, 2, 2]),
        (Query { field: Some("fields.name = \"a1\"".parse().unwrap()), ..everything() }, vec![3, 2, 1, 0]),
        (Query { version: Some(1), ..everything() }, vec![]),
        (Query::of("other-app".parse().unwrap()), vec![]),
    ] {
        assert_eq!(counters(history, query.clone()).await, expected, "{query:?}");
    }
}

#[tokio::test]
async fn results_that_only_have_the_name_of_the_field_take_no_place_of_others() {
    let harness = Harness::new();
    let history = harness.open();
    for device in ["a1", "b1"] {
        for counter in 0..6 {
            harness.uplink(&history, device, counter).await;
        }
    }
    history.seal().await.unwrap();
    let field = Query { field: Some("fields.name = \"a1\"".parse().unwrap()), limit: 2, ..everything() };
    let first = history.query(field.clone()).await.unwrap();
    let second = history.query(Query { before: first.next, limit: 4, ..field }).await.unwrap();
    let shown: Vec<_> = first.records.iter().chain(&second.records).map(|record| record.counter).collect();
    assert_eq!((first.records.len(), shown), (2, vec![5, 4, 3, 2, 1, 0]));
    assert_eq!(second.next, None);
}

#[tokio::test]
async fn only_failures_and_one_version_are_shown_where_asked_for() {
    let harness = Harness::new();
    let history = harness.open();
    let (app_id, dev_id) = (app(), dev("a1"));
    for (counter, outcome) in
        [Outcome::Decoded, Outcome::Failed, Outcome::Invalid, Outcome::NotConverted].iter().enumerate()
    {
        let counter = counter as u32;
        let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now());
        kept(history.append(&NewRecord { counter, outcome: *outcome, version: Some(counter), ..plain }).await);
    }
    history.seal().await.unwrap();
    assert_eq!(counters(&history, Query { failed_only: true, ..everything() }).await, [2, 1]);
    assert_eq!(counters(&history, Query { version: Some(3), ..everything() }).await, [3]);
}

#[tokio::test]
async fn changes_of_devices_take_no_place_of_messages() {
    let harness = Harness::new();
    let history = harness.open();
    let (app_id, dev_id) = (app(), dev("a1"));
    harness.uplink(&history, "a1", 1).await;
    for name in ["create", "down/sent", "update", "silent", "delete"] {
        let kind = Kind::Event(name.to_owned());
        kept(history.append(&NewRecord::new(&app_id, &dev_id, &kind, harness.clock.now())).await);
    }
    let messages = Query { without_changes: true, limit: 2, ..everything() };
    for _ in ["in the tail", "sealed"] {
        let first = history.query(messages.clone()).await.unwrap();
        let second = history.query(Query { before: first.next, ..messages.clone() }).await.unwrap();
        let kinds: Vec<_> = first.records.iter().chain(&second.records).map(|record| record.kind.as_str()).collect();
        assert_eq!((kinds, second.next), (vec!["silent", "down/sent", "up"], None));
        history.seal().await.unwrap();
    }
}

// Conformance: Devices are found by text and by when they were last seen; their newest uplinks
#[tokio::test]
async fn the_last_uplink_of_each_device_says_when_it_was_heard() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..3 {
        for device in ["a1", "b1", "c1"] {
            harness.uplink(&history, device, counter).await;
        }
    }
    history.seal().await.unwrap();
    harness.uplink(&history, "b1", 3).await;
    let seen = harness.clock.now();
    // Neither an event nor a correction is heard.
    let (app_id, dev_id, event) = (app(), dev("a1"), Kind::Event("down/sent".to_owned()));
    harness.clock.advance(Duration::from_secs(1));
    let plain = |kind| NewRecord::new(&app_id, &dev_id, kind, harness.clock.now());
    kept(history.append(&plain(&event)).await);
    let corrects = Some(RecordId::new(1, 0, 0));
    kept(history.append(&NewRecord { revision: 1, corrects, ..plain(&Kind::Uplink) }).await);
    harness.uplink_of(&history, &"other".parse().unwrap(), "a1", 0).await;

    let secs = Duration::from_secs;
    let [a1, b1, c1] = [("a1", 3), ("b1", 0), ("c1", 1)].map(|(id, ago)| (dev(id), seen.minus(secs(ago))));
    for _ in ["beside the tail", "in files"] {
        assert_eq!(heard(&history, None).await, [a1.clone(), b1.clone(), c1.clone()]);
        assert_eq!(heard(&history, Some(seen.minus(secs(1)))).await, [b1.clone(), c1.clone()]);
        history.seal().await.unwrap();
    }
    history.remove_device_until(&app_id, &c1.0, seen).await.unwrap();
    assert_eq!(heard(&history, None).await, [a1, b1]);
    history.close().await.unwrap();
}

/// When each device was last heard, in the order of their ids.
async fn heard(history: &history::History, since: Option<Timestamp>) -> Vec<(DevId, Timestamp)> {
    let LastHeard { times, is_partial } = history.last_heard(&app(), since).await.unwrap();
    assert!(!is_partial);
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_unstable();
    times
}
