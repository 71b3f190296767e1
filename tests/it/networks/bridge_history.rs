//! The history of `airlock bridge`, as its operator reads it.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use api::chirpstack::CodecRuntime;
use serde_json::{Value, json};
use testing::{CHIRPSTACK_APPLICATION, MqttClient, MqttMessage};

use super::bridge::{DEVICE, Process, command, network, send, topic, uplink};
use crate::harness::{MESSAGE_TIMEOUT, airlock, complaint, printed, run};

const DIR: &str = "bridge/chirpstack/history";
const CODEC: &str = "function decodeUplink(input) {
    if (input.bytes[0] === 2) throw new Error('no sensor');
    return {data: {n: 10 * input.bytes[0]}};
}";

fn history(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = airlock(dir);
    command.arg("history").args(arguments).args(["--dir", DIR]);
    command
}

/// The records of the bridge.
fn records(dir: &Path) -> Vec<Value> {
    let exported = printed(&run(&mut history(dir, &["export", "-"]), ""));
    exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until the records hold.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(MESSAGE_TIMEOUT, waiting).await.unwrap_or_else(|_| panic!("not {what}"));
}

async fn next_up(application: &mut MqttClient) -> MqttMessage {
    loop {
        let message = application.next().await;
        if message.kind() == "event/up" {
            return message;
        }
    }
}

/// The Parquet files of all applications.
fn files(dir: &Path) -> Vec<PathBuf> {
    let below = |dir: PathBuf| fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    let days = below(dir.join(DIR)).filter(|path| path.is_dir()).flat_map(below);
    let files = days.filter(|path| path.is_dir()).flat_map(below);
    files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).collect()
}

/// Counts of uplinks that are equal, changed, newly failing, newly decoded and still failing with this codec.
fn replayed(dir: &Path, from: &Path, codec: &str) -> Value {
    let mut command = airlock(dir);
    command.args(["replay", "--json", "--codec", codec, "--from"]).arg(from);
    let report: Value = serde_json::from_str(&printed(&run(&mut command, ""))).unwrap();
    json!(["equal", "changed", "newly_failing", "newly_decoded", "still_failing"].map(|name| report[name].clone()))
}

/// A replay runs nothing of a file in which a single byte has changed.
fn check_damage(dir: &Path) {
    let whole = fs::read(dir.join("week.parquet")).unwrap();
    for place in [30, whole.len() / 2, whole.len() - 30] {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        fs::write(dir.join("damaged.parquet"), bytes).unwrap();
        let output = run(airlock(dir).args(["replay", "--from", "damaged.parquet", "--codec", "new.js"]), "");
        let text = complaint(&output);
        assert!(text.contains("damaged.parquet is damaged") && !text.contains("External"), "{place}: {text}");
        assert_eq!(output.status.code(), Some(2), "{place}");
    }
}

// The stand-in for the API works while the test waits for commands.
// Conformance: Commands read a directory of history without a server
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_finds_why_a_message_failed_and_decodes_it_again() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    api.set_profile(DEVICE, CodecRuntime::Js, CODEC);
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let mut application = MqttClient::connect(&broker.url()).await;
    application.subscribe("airlock/#").await;
    let process = Process::start(&mut command(dir, &broker.url(), &api));
    send(&mut chirpstack, 1).await;
    let mut failing = uplink(2);
    failing["data"] = json!("Ag==");
    chirpstack.publish(&topic(), failing.to_string()).await;
    for counter in [1, 2] {
        assert_eq!(next_up(&mut application).await.json()["fCnt"], counter);
    }
    // Beside the bridge that writes, and after it was killed.
    until("recorded", || records(dir).len() == 2).await;
    until("with limits", || dir.join(DIR).join("limits.jsonl").exists()).await;
    process.kill();
    let failed = printed(&run(&mut history(dir, &["list", "--device", DEVICE, "--failed", "--output", "jsonl"]), ""));
    let failed: Value = serde_json::from_str(&failed).unwrap();
    assert!(failed["result"].as_str().unwrap().contains("no sensor"), "{failed}");
    let info = printed(&run(&mut history(dir, &["info", failed["id"].as_str().unwrap()]), ""));
    assert!(info.contains("Payload: 02") && info.contains("Limits: fields_bytes_max"), "{info}");

    fs::write(dir.join("old.js"), CODEC).unwrap();
    fs::write(dir.join("new.js"), "function decodeUplink(input) { return {data: {n: input.bytes[0]}}; }").unwrap();
    printed(&run(&mut history(dir, &["export", "week.parquet", "--since", "7d"]), ""));
    let new = format!("{DEVICE}=new.js");
    assert_eq!(replayed(dir, Path::new("week.parquet"), "old.js"), json!([1, 0, 0, 0, 1]));
    assert_eq!(replayed(dir, Path::new("week.parquet"), &new), json!([0, 1, 0, 1, 0]));
    check_damage(dir);

    // A segment that is full moves to a file.
    let mut small = command(dir, &broker.url(), &api);
    let _process = Process::start(small.env("AIRLOCK_HISTORY__SEGMENT_BYTES_MAX", "1"));
    until("in a file", || !files(dir).is_empty()).await;
    assert_eq!(replayed(dir, &files(dir)[0], &new), json!([0, 1, 0, 1, 0]));
    assert_eq!(records(dir).len(), 2);
}

// Conformance: Commands read a directory of history without a server
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_finds_joins_and_downlinks_by_their_kinds() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let mut application = MqttClient::connect(&broker.url()).await;
    application.subscribe("airlock/#").await;
    let _process = Process::start(&mut command(dir, &broker.url(), &api));
    for (event, body) in [
        ("event/join", r#"{"devAddr":"00030000","time":"2026-11-22T16:45:55.25Z"}"#),
        ("event/log", r#"{"code":"EXPIRED","description":"too late"}"#),
    ] {
        chirpstack.publish(&topic().replace("event/up", event), body).await;
        assert_eq!(application.next().await.kind(), event);
    }
    until("recorded", || records(dir).len() == 2).await;
    let listed = |arguments: &[&str]| -> Value {
        let arguments = [&["list", "--output", "jsonl"][..], arguments].concat();
        serde_json::from_str(&printed(&run(&mut history(dir, &arguments), ""))).unwrap()
    };
    let joined = listed(&["--kind", "activations"]);
    assert_eq!((&joined["dev_id"], &joined["kind"]), (&json!(DEVICE), &json!("activations")));
    // The network was late: what comes later is sorted by when it was recorded, which people see beside its time.
    let table = printed(&run(&mut history(dir, &["list", "--kind", "activations"]), ""));
    assert!(table.contains(":55, recorded "), "{table}");
    let [time, recorded] = ["time", "recorded"].map(|name| joined[name].as_str().unwrap());
    assert!(time == "2026-11-22T16:45:55.25Z" && recorded != time && recorded.ends_with('Z'), "{joined}");
    let failed = listed(&["--failed"]);
    assert_eq!((&failed["kind"], &failed["result"]), (&json!("down/errors"), &json!("too late")));
}

// Conformance: An uplink that a bridge has acknowledged
#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_bridge_has_acknowledged_is_recorded() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    let mut application = MqttClient::connect(&broker.url()).await;
    application.subscribe("airlock/#").await;
    for round in 0..3 {
        let process = Process::start(&mut command(dir, &broker.url(), &api));
        for counter in round * 50..(round + 1) * 50 {
            send(&mut chirpstack, counter).await;
        }
        // At least one of this round is being worked on.
        next_up(&mut application).await;
        process.kill();
    }
    let _process = Process::start(&mut command(dir, &broker.url(), &api));
    let all: BTreeSet<u64> = (0..150).collect();
    let counters =
        || -> BTreeSet<u64> { records(dir).iter().map(|record| record["counter"].as_u64().unwrap()).collect() };
    until("all recorded", || counters() == all).await;
}

// Conformance: An uplink that a bridge has acknowledged
#[tokio::test(flavor = "multi_thread")]
async fn what_a_bridge_cannot_record_is_counted_and_published() {
    let Some((broker, api, mut chirpstack)) = network().await else { return };
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    // Of an earlier process.
    let left = dir.join(DIR).join("tail/left");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("0000.damaged"), "may have more records").unwrap();
    let mut application = MqttClient::connect(&broker.url()).await;
    application.subscribe("airlock/#").await;
    let process = Process::start(&mut command(dir, &broker.url(), &api));
    process.wait_for_metric("airlock_history_damaged_files 1").await;
    process.wait_for_metric("airlock_history_kept 1").await;
    fs::remove_dir_all(dir.join(DIR).join("tail")).unwrap();
    send(&mut chirpstack, 1).await;
    assert_eq!(next_up(&mut application).await.json()["fCnt"], 1);
    process.wait_for_metric("airlock_history_lost_records_total{reason=\"failed\"} 1").await;
    process.wait_for_metric("airlock_history_kept 0").await;
}

// Conformance: Commands read a directory of history without a server
#[test]
fn a_directory_without_records_or_of_several_applications_is_explained() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path();
    fs::create_dir_all(dir.join(DIR)).unwrap();
    let said = |arguments: &[&str]| {
        let output = run(&mut history(dir, arguments), "");
        (complaint(&output), output.status.code())
    };
    let (text, code) = said(&["list"]);
    assert!(text.contains("there are no records in bridge/chirpstack/history") && code == Some(3), "{text}");
    for application in [CHIRPSTACK_APPLICATION, "other"] {
        fs::create_dir_all(dir.join(DIR).join(format!("app={application}/day=2026-11-28"))).unwrap();
    }
    let (text, code) = said(&["list"]);
    let expected = format!("choose one with --app-id: {CHIRPSTACK_APPLICATION}, other");
    assert!(text.contains(&expected) && code == Some(2), "{text}");
    let none = printed(&run(&mut history(dir, &["list", "--app-id", "other"]), ""));
    assert!(none.contains("Application other has no such records"), "{none}");
    for command in [&["list"][..], &["export"], &["info", "0196f3c2a1b40000002a00000001"]] {
        let (text, code) = said(&[command, &["--app-id", "others"]].concat());
        let expected = format!(
            "no records of others in bridge/chirpstack/history: it has those of {CHIRPSTACK_APPLICATION}, other"
        );
        assert!(text.contains(&expected) && code == Some(3), "{text}");
    }
    let none = printed(&run(&mut history(dir, &["list", "--app-id", "other", "--kind", "log"]), ""));
    assert!(none.contains("Application other has no such records"), "{none}");
    let (text, code) = said(&["list", "--app-id", "other", "--kind", "logs"]);
    assert!(text.contains("`logs` is unknown: there are up, ") && code == Some(2), "{text}");
    fs::write(dir.join(DIR).join("app=other/day=2026-11-28/0-1800000000000-x.parquet"), "no Parquet").unwrap();
    let (text, code) = said(&["export", "--app-id", "other"]);
    assert!(text.contains("0-1800000000000-x.parquet") && text.contains("records are missing"), "{text}");
    assert_eq!(code, Some(5));
}
