//! Charts have the numbers of all uplinks of a device, wherever these are, each as it was decoded last.

use std::{fs, time::Duration};

use history::{Chart, ChartQuery, History, Kind, NewRecord, Outcome, RecordId};
use types::Clock;

use crate::harness::{Harness, app, damage_page, dev, files, kept};

/// A chart of all that the device has sent since the clock began.
fn query(harness: &Harness, dev_id: &str, field: Option<&str>, points: usize) -> ChartQuery {
    let until = harness.clock.now().plus(Duration::from_secs(1));
    let since = until.minus(Duration::from_secs(60));
    ChartQuery { app_id: app(), dev_id: dev(dev_id), since, until, field: field.map(str::to_owned), points }
}

/// Keeps a result, which may correct another one, a second after the one before.
async fn keep(
    (harness, history): (&Harness, &History),
    outcome: Outcome,
    result: &str,
    corrects: Option<(RecordId, u32)>,
) -> RecordId {
    harness.clock.advance(Duration::from_secs(1));
    let (app_id, dev_id) = (app(), dev("a1"));
    let new = NewRecord {
        outcome,
        result,
        corrects: corrects.map(|(id, _)| id),
        revision: corrects.map_or(0, |(_, revision)| revision),
        ..NewRecord::new(&app_id, &dev_id, &Kind::Uplink, harness.clock.now())
    };
    kept(history.append(&new).await)
}

/// Path, least and greatest value, and how many there are, of each field.
fn values(chart: &Chart) -> Vec<(&str, f64, f64, u64)> {
    let values = chart.fields.iter().map(|field| {
        let min = field.points.iter().map(|point| point.min).fold(f64::INFINITY, f64::min);
        let max = field.points.iter().map(|point| point.max).fold(f64::NEG_INFINITY, f64::max);
        (field.path.as_str(), min, max, field.points.iter().map(|point| point.count).sum())
    });
    values.collect()
}

// Conformance: Charts have the numbers of all uplinks of a device, as they were corrected last
#[tokio::test]
async fn a_chart_has_what_is_in_files_and_what_is_not() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..6 {
        harness.uplink(&history, "a1", counter).await;
        harness.uplink(&history, "b1", 100 + counter).await;
        // First all are in the tail, then some, then only the last.
        if counter % 2 == 1 {
            let chart = history.chart(query(&harness, "a1", None, 10)).await.unwrap();
            let last = f64::from(counter);
            assert_eq!(values(&chart), [("level", 0.0, last, u64::from(counter) + 1)]);
            history.seal().await.unwrap();
            let sealed = history.chart(query(&harness, "a1", Some("level"), 10)).await.unwrap();
            assert_eq!((sealed.fields, sealed.examined), (chart.fields, chart.examined));
        }
    }
    let fine = history.chart(query(&harness, "a1", None, 1000)).await.unwrap();
    assert!(fine.fields[0].points.len() == 6 && !fine.is_cut && !fine.has_more_fields, "{fine:?}");
    let half =
        ChartQuery { since: harness.clock.now().minus(Duration::from_secs(5)), ..query(&harness, "a1", None, 1000) };
    assert_eq!(values(&history.chart(half).await.unwrap()), [("level", 3.0, 5.0, 3)]);
    for none in [query(&harness, "c1", None, 10), query(&harness, "a1", Some("name"), 10)] {
        assert_eq!(history.chart(none).await.unwrap().fields, []);
    }
    history.close().await.unwrap();
}

// Conformance: Charts have the numbers of all uplinks of a device, as they were corrected last
#[tokio::test]
async fn an_uplink_has_the_values_of_its_newest_correction() {
    let harness = Harness::new();
    let history = harness.open();
    let all = (&harness, &*history);
    let first = keep(all, Outcome::Decoded, r#"{"t":1}"#, None).await;
    let failed = keep(all, Outcome::Failed, "", None).await;
    let refused = keep(all, Outcome::Decoded, r#"{"t":3}"#, None).await;
    keep(all, Outcome::Invalid, r#"{"t":99}"#, None).await;
    keep(all, Outcome::Decoded, r#"{"u":{"v":4}}"#, None).await;
    let until = query(&harness, "a1", None, 1000);
    let before = history.chart(until.clone()).await.unwrap();
    assert_eq!((values(&before), before.examined), (vec![("t", 1.0, 3.0, 2), ("u.v", 4.0, 4.0, 1)], 5));
    // Corrections come after the end of the chart.
    keep(all, Outcome::Decoded, r#"{"t":20}"#, Some((first, 2))).await;
    keep(all, Outcome::Decoded, r#"{"t":10}"#, Some((first, 1))).await;
    keep(all, Outcome::Decoded, r#"{"t":2}"#, Some((failed, 1))).await;
    keep(all, Outcome::Invalid, r#"{"t":98}"#, Some((refused, 1))).await;
    for _ in 0..2 {
        let after = history.chart(until.clone()).await.unwrap();
        assert_eq!((values(&after), after.examined), (vec![("t", 2.0, 20.0, 2), ("u.v", 4.0, 4.0, 1)], 5));
        let times = |chart: &Chart| chart.fields[0].points.iter().map(|point| point.time).collect::<Vec<_>>();
        assert_eq!(times(&after)[0], times(&before)[0], "it stays where it was");
        history.seal().await.unwrap();
    }
    history.close().await.unwrap();
}

// Conformance: Charts have the numbers of all uplinks of a device, as they were corrected last
#[tokio::test]
async fn what_was_removed_is_in_no_chart() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    history.seal().await.unwrap();
    harness.uplink(&history, "a1", 2).await;
    let before = query(&harness, "a1", None, 10);
    history.remove_device_until(&app(), &dev("a1"), harness.clock.now()).await.unwrap();
    harness.uplink(&history, "a1", 3).await;
    assert_eq!(history.chart(before).await.unwrap().fields, []);
    assert_eq!(values(&history.chart(query(&harness, "a1", None, 10)).await.unwrap()), [("level", 3.0, 3.0, 1)]);
    history.close().await.unwrap();
}

// Conformance: Charts have the numbers of all uplinks of a device, as they were corrected last
#[tokio::test]
async fn a_damaged_file_is_named_and_hides_no_other() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..2 {
        harness.uplink(&history, "a1", counter).await;
        history.seal().await.unwrap();
    }
    let files = files(&harness);
    assert_eq!(files.len(), 2);
    damage_page(&files[0]);
    let chart = history.chart(query(&harness, "a1", None, 10)).await.unwrap();
    assert_eq!(values(&chart), [("level", 1.0, 1.0, 1)]);
    assert_eq!(chart.skipped.iter().map(|skipped| &skipped.path).collect::<Vec<_>>(), [&files[0]]);
    history.close().await.unwrap();
}

// Conformance: Charts have the numbers of all uplinks of a device, as they were corrected last
#[tokio::test]
async fn a_file_of_another_application_shows_nothing() {
    let harness = Harness::new();
    let history = harness.open();
    harness.uplink(&history, "a1", 1).await;
    harness.uplink_of(&history, &"other-app".parse().unwrap(), "a1", 7).await;
    history.seal().await.unwrap();
    let others = crate::harness::files_of(&harness, &"other-app".parse().unwrap());
    let day = files(&harness)[0].parent().unwrap().to_owned();
    fs::copy(&others[0], day.join(others[0].file_name().unwrap())).unwrap();
    let chart = history.chart(query(&harness, "a1", None, 10)).await.unwrap();
    assert_eq!((values(&chart), chart.examined), (vec![("level", 1.0, 1.0, 1)], 1));
    history.close().await.unwrap();
}

// Conformance: Charts have the numbers of all uplinks of a device, as they were corrected last
#[tokio::test]
async fn a_copy_of_a_file_counts_no_uplink_twice() {
    let harness = Harness::new();
    let history = harness.open();
    for counter in 0..5 {
        harness.uplink(&history, "a1", counter).await;
    }
    history.seal().await.unwrap();
    let file = files(&harness).remove(0);
    let name = file.file_name().unwrap().to_str().unwrap().replace(".parquet", "x.parquet");
    fs::copy(&file, file.with_file_name(name)).unwrap();
    let chart = history.chart(query(&harness, "a1", None, 10)).await.unwrap();
    assert_eq!((values(&chart), chart.examined), (vec![("level", 0.0, 4.0, 5)], 5));
    history.close().await.unwrap();
}
