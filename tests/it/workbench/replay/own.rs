//! Files of our own history: corrections, seeds and variables, and payloads that look like hexadecimal.

use std::fs;

use serde_json::{Value, json};

use super::{command, counts, report, with_codec};
use crate::harness::airlock;

const IDS: [&str; 4] = [
    "0196f3c2a1b40000002a00000004",
    "0196f3c2a1b40000002a00000003",
    "0196f3c2a1b40000002a00000002",
    "0196f3c2a1b40000002a00000001",
];

/// A record of an uplink; `correction` is what it corrects, and for which time.
fn record(id: &str, celsius: f64, correction: Option<(&str, u32)>) -> Value {
    let mut record = json!({
        "id": id, "received": "2026-11-22T10:00:00Z", "app_id": "cellar", "dev_id": "meter-1", "kind": "up", "port": 2,
        "payload": "CVw=", "outcome": "decoded", "result": {"celsius": celsius, "port": 2}, "revision": 0,
    });
    if let Some((original, revision)) = correction {
        record["corrects"] = original.into();
        record["revision"] = revision.into();
    }
    record
}

/// As `airlock history export` writes them: the newest first.
fn corrected_twice() -> [Value; 4] {
    [
        record(IDS[0], 23.96, Some((IDS[3], 2))),
        record(IDS[1], 5.0, Some((IDS[3], 1))),
        record(IDS[2], 7.0, None),
        record(IDS[3], 239.6, None),
    ]
}

fn csv(records: &[Value]) -> String {
    const COLUMNS: [&str; 12] = [
        "id", "received", "app_id", "dev_id", "kind", "port", "payload", "metadata", "outcome", "result", "revision",
        "corrects",
    ];
    let cell = |record: &Value, column: &str| match &record[column] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => format!("\"{}\"", value.to_string().replace('"', "\"\"")),
    };
    let line = |record: &Value| COLUMNS.map(|column| cell(record, column)).join(",") + "\n";
    COLUMNS.join(",") + "\n" + &records.iter().map(line).collect::<String>()
}

// Conformance: Of uplinks in our own exports the newest revision counts
#[test]
fn of_an_uplink_and_its_corrections_only_the_newest_counts() {
    let dir = with_codec();
    let records = corrected_twice();
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    for input in [lines, csv(&records)] {
        let (found, code) = report(&mut command(dir.path(), "-", &["--jobs", "3"]), &input);
        assert_eq!((counts(&found), &found["outdated"], code), ([1, 1, 0, 0, 0], &json!(2), Some(0)), "{found:#}");
        assert_eq!(found["fields"]["celsius"]["example"]["old"], "7.0", "{found:#}");
    }
    // Whatever is between them, and however many batches.
    let between = record(IDS[2], 7.0, None).to_string() + "\n";
    let input = format!("{}\n{}{}\n", records[0], between.repeat(5000), records[3]);
    let (found, _) = report(&mut command(dir.path(), "-", &[]), &input);
    assert_eq!((counts(&found), &found["outdated"]), ([1, 5000, 0, 0, 0], &json!(1)));
}

// Conformance: Of uplinks in our own exports the newest revision counts
#[test]
fn originals_count_alone_if_that_is_asked() {
    let dir = with_codec();
    let records = corrected_twice();
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    for input in [lines, csv(&records)] {
        let (found, code) = report(&mut command(dir.path(), "-", &["--originals"]), &input);
        assert_eq!((counts(&found), code), ([0, 2, 0, 0, 0], Some(0)), "{found:#}");
        assert_eq!((&found["left_out"], &found["outdated"]), (&json!(2), &json!(0)), "{found:#}");
    }
}

// Conformance: Each device profile of a network has its codec, and those without one are named
#[test]
fn uplinks_that_a_bridge_recorded_have_the_profiles_of_their_devices() {
    let dir = with_codec();
    let of_profile = |id, profile: &str| {
        let mut record = record(id, 23.96, None);
        record["metadata"] = json!({"device_profile_id": format!("id of {profile}"), "device_profile_name": profile});
        record
    };
    let records = [of_profile(IDS[0], "Meter"), of_profile(IDS[1], "Door"), record(IDS[2], 23.96, None)];
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    for input in [lines, csv(&records)] {
        for codec in ["meter=codec.js", "ID OF METER=codec.js"] {
            let mut command = airlock(dir.path());
            let (found, _) = report(command.args(["replay", "--from", "-", "--codec", codec]), &input);
            assert_eq!(counts(&found), [1, 0, 0, 0, 0], "{found:#}");
            assert_eq!(found["profiles_without_codec"], json!({"Door": 1, "": 1}), "{found:#}");
        }
    }
}

// Conformance: Of uplinks in our own exports the newest revision counts
#[test]
fn functions_see_the_recorded_seed_and_variables() {
    let dir = with_codec();
    let codec = "function Decode(port, bytes, variables) { return { at: variables.at, dice: Math.random() }; }";
    fs::write(dir.path().join("codec.js"), codec).unwrap();
    fs::write(dir.path().join("variables.json"), r#"{"at": "attic"}"#).unwrap();
    let mut with_seed = record(IDS[0], 0.0, None);
    with_seed["seed"] = "18446744073709551615".into();
    with_seed["extra"] = json!({"variables": {"at": "cellar"}});
    let other_seed = Value::Object({
        let mut record = with_seed.as_object().unwrap().clone();
        record["seed"] = "7".into();
        record
    });
    let lines = |records: &[&Value]| records.iter().map(|record| format!("{record}\n")).collect::<String>();
    let arguments = ["--output", "out.jsonl", "--variables", "variables.json"];
    let input = lines(&[&with_seed, &with_seed, &other_seed, &record(IDS[1], 0.0, None)]);
    report(&mut command(dir.path(), "-", &arguments), &input);
    let made = fs::read_to_string(dir.path().join("out.jsonl")).unwrap();
    let made: Vec<Value> = made.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [first, second, third, fourth] = made.as_slice() else { panic!("{made:?}") };
    assert_eq!(first["new"], second["new"]);
    assert_ne!(first["new"]["dice"], third["new"]["dice"]);
    assert_eq!([&first["new"]["at"], &fourth["new"]["at"]], ["cellar", "attic"]);
}

// Conformance: Of uplinks in our own exports the newest revision counts
#[test]
fn payloads_of_our_own_files_are_base64_whatever_they_look_like() {
    let dir = with_codec();
    // These are the characters of Base64, and would be two bytes in hexadecimal.
    let text = csv(&corrected_twice()[2..3]).replace("CVw=", "0x09");
    let (found, _) = report(&mut command(dir.path(), "-", &[]), &text);
    assert_eq!(found["fields"]["celsius"]["example"]["payload"], "d31d3d", "{found:#}");
    let (found, _) = report(&mut command(dir.path(), "-", &["--format", "csv"]), "frm_payload,f_port\n0x09,2\n");
    assert_eq!(found["newly_decoded_examples"][0]["payload"], "d31d3d", "{found:#}");
    let (found, _) = report(&mut command(dir.path(), "-", &["--format", "csv"]), "data,f_port\n0x095c,2\n");
    assert_eq!(found["newly_decoded_examples"][0]["payload"], "095c", "{found:#}");
}
