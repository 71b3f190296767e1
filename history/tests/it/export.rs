//! Exports have the records that a query finds, in each format.

use std::{collections::BTreeMap, fs};

use futures::TryStreamExt;
use history::{ExportPart, Format, History, Kind, NewRecord, Outcome, Query, Settings};
use serde_json::{Value, json};
use types::Timestamp;

use crate::harness::{Harness, all, app, counters, dev, everything, files, kept};

async fn exported(history: &History, format: Format) -> Vec<u8> {
    let query = Query { oldest_first: true, limit: 1, ..everything() };
    let parts: Vec<_> = history.export(query, format).try_collect().await.unwrap();
    let bytes = |part: &ExportPart| match part {
        ExportPart::Bytes(bytes) => bytes.clone(),
        ExportPart::Unreadable(files) => panic!("{files:?} could not be read"),
    };
    parts.iter().map(bytes).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn json_lines_have_what_is_known_of_each_message() {
    let harness = Harness::new();
    let history = harness.open();
    let (app_id, dev_id) = (app(), dev("a1"));
    let received = Timestamp::from_nanos(1_790_000_000_123_000_001);
    let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, received);
    let first = kept(history.append(&plain).await);
    let full = NewRecord {
        port: 7,
        payload: &[1, 2],
        metadata: r#"{"time":"now"}"#,
        seed: Some(u64::MAX),
        functions: Some([9; 32]),
        version: Some(3),
        limits: Some([5; 8]),
        outcome: Outcome::Failed,
        result: r#"{"a":[1.50]}"#,
        failure: Some("boom"),
        warnings: r#"["low"]"#,
        fuel: 12,
        microseconds: Some(34),
        revision: 1,
        corrects: Some(first),
        ..plain
    };
    kept(history.append(&full).await);
    let text = String::from_utf8(exported(&history, Format::JsonLines).await).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["received"], "2026-09-21T14:13:20.123000001Z");
    for name in ["result", "microseconds"] {
        assert!(!lines[0].as_object().unwrap().contains_key(name), "{name}");
    }
    for (name, value) in [
        ("corrects", json!(first)),
        ("payload", json!("AQI=")),
        ("metadata", json!({"time": "now"})),
        ("seed", json!("18446744073709551615")),
        ("functions", json!("09".repeat(32))),
        ("outcome", json!("failed")),
        ("failure", json!("boom")),
        ("warnings", json!(["low"])),
        ("microseconds", json!(34)),
        ("revision", json!(1)),
    ] {
        assert_eq!(lines[1][name], value, "{name}");
    }
    assert!(text.contains(r#""result":{"a":[1.50]}"#), "numbers are as the function wrote them");
}

#[tokio::test]
async fn csv_has_a_line_for_each_message_and_one_with_names() {
    let harness = Harness::new();
    let history = harness.open();
    assert_eq!(String::from_utf8(exported(&history, Format::Csv).await).unwrap().lines().count(), 1);
    for counter in 0..3 {
        harness.uplink(&history, "a1", counter).await;
    }
    let (app_id, dev_id) = (app(), dev("a1"));
    let plain = NewRecord::new(&app_id, &dev_id, &Kind::Uplink, Timestamp::from_nanos(1));
    kept(history.append(&NewRecord { microseconds: Some(34), ..plain }).await);
    let text = String::from_utf8(exported(&history, Format::Csv).await).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("id,recorded,received,app_id,dev_id,kind,port,counter"));
    assert!(lines[3].contains(r#",decoded,"{""level"":2,""name"":""a1""}","#), "{}", lines[3]);
    assert!(lines[0].ends_with(",revision,corrects,microseconds"), "{}", lines[0]);
    assert!(lines[3].ends_with(",0,,") && lines[4].ends_with(",0,,34"), "{text}");
    assert_eq!(lines.len(), 5);
}

#[tokio::test]
async fn an_exported_parquet_file_can_be_read_as_history() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..50 {
        harness.uplink(&history, ["a1", "b1"][counter as usize % 2], counter).await;
    }
    history.seal().await.unwrap();
    let records = all(&history, everything()).await;
    let bytes = exported(&history, Format::Parquet).await;
    fs::write(files(&harness).remove(0), bytes).unwrap();
    assert_eq!(all(&history, everything()).await, records);
    let device = Query { dev_id: Some(dev("b1")), limit: 2, ..everything() };
    assert_eq!(history.query(device).await.unwrap().records.len(), 2);
}

#[tokio::test]
async fn names_of_formats_are_those_of_their_files() {
    for format in [Format::JsonLines, Format::Csv, Format::Parquet] {
        assert_eq!(format.extension().parse(), Ok(format));
    }
    assert!("xlsx".parse::<Format>().is_err());
    let harness = Harness::new();
    assert_eq!(counters(&harness.open(), everything()).await, [0; 0]);
}

#[tokio::test]
async fn limits_are_in_a_file_beside_the_records_while_history_is_on() {
    let limits = BTreeMap::from([([0xab; 8], BTreeMap::from([("fuel".to_owned(), 7)])), ([1; 8], BTreeMap::new())]);
    let harness = Harness::new();
    let history = harness.open();
    for limits in [BTreeMap::new(), limits.clone()] {
        history.write_limits(limits).await.unwrap();
    }
    let text = fs::read_to_string(harness.path().join("limits.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = [
        json!({"limits": "0101010101010101", "checksum": "26f143cf"}),
        json!({"fuel": 7, "limits": "abababababababab", "checksum": "5db1bd79"}),
    ];
    assert_eq!(lines, expected);
    let off = Harness::with(Settings { bytes_max: 0, ..Settings::default() });
    off.open().write_limits(limits).await.unwrap();
    assert!(!off.path().join("limits.jsonl").exists());
}
