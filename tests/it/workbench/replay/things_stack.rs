//! The storage integration of The Things Stack.

use std::{fs, process::Output};

use serde_json::{Value, json};
use testing::{THINGS_STACK_KEY, ThingsStackApi, things_stack_uplink};
use tokio::task::spawn_blocking;

use super::{command, counts, with_codec};
use crate::harness::{complaint, run};

/// 1200 uplinks, which are several pages; every tenth has an object that is wrong.
async fn with_uplinks() -> ThingsStackApi {
    let api = ThingsStackApi::start().await;
    for number in 0..1200_u32 {
        let mut uplink = things_stack_uplink("meter-1", number, "CVw=");
        let celsius = if number % 10 == 0 { 1.0 } else { 23.96 };
        uplink["uplink_message"]["decoded_payload"] = json!({ "celsius": celsius, "port": 2 });
        api.store(uplink);
    }
    api
}

async fn replay(from: String, key: &'static str, arguments: &'static [&'static str]) -> Output {
    let dir = with_codec();
    fs::write(dir.path().join("key"), key).unwrap();
    let arguments: Vec<_> = arguments.iter().chain(&["--json"]).copied().collect();
    spawn_blocking(move || run(&mut command(dir.path(), &from, &arguments), "")).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stored_uplink_is_read_once() {
    let api = with_uplinks().await;
    let from = format!("{}/api/v3/as/applications/sensors/packages/storage/uplink_message", api.url());
    let output = replay(from.clone(), THINGS_STACK_KEY, &["--password-file", "key"]).await;
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(counts(&found), [1080, 120, 0, 0, 0], "{found:#}");
    assert_eq!(found["fields"]["celsius"]["example"]["device"], "meter-1");
    let since = &["--password-file", "key", "--since", "2026-11-22T16:10:00Z", "--until", "2026-11-22T16:11:00Z"];
    let output = replay(from, THINGS_STACK_KEY, since).await;
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["uplinks"], 60, "{found:#}");
}

/// Pages of so many would be longer than an answer may be.
#[tokio::test(flavor = "multi_thread")]
async fn long_uplinks_come_in_shorter_pages() {
    let api = ThingsStackApi::start().await;
    for number in 0..300 {
        let mut uplink = things_stack_uplink("meter-1", number, "CVw=");
        uplink["uplink_message"]["decoded_payload"] = json!({"celsius": 23.96, "port": 2});
        uplink["uplink_message"]["rx_metadata"] = json!([{"advanced": "x".repeat(40_000)}]);
        api.store(uplink);
    }
    let from = format!("{}/api/v3/as/applications/sensors", api.url());
    let output = replay(from, THINGS_STACK_KEY, &["--password-file", "key"]).await;
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(counts(&found), [300, 0, 0, 0, 0], "{found:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_said() {
    let api = with_uplinks().await;
    let good = format!("{}/api/v3/as/applications/sensors", api.url());
    let wrong = replay(good.clone(), "NNSXS.WRONG", &["--password-file", "key"]).await;
    assert!(!complaint(&wrong).contains("NNSXS") && wrong.status.code() == Some(4), "{wrong:?}");
    let without = replay(good.clone(), "", &[]).await;
    assert!(complaint(&without).contains("use --password-file"), "{without:?}");
    let elsewhere = replay(api.url(), THINGS_STACK_KEY, &["--password-file", "key"]).await;
    assert!(complaint(&elsewhere).contains("the URL must be like"), "{elsewhere:?}");
}
