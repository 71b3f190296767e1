//! Several codecs: each runs on the devices of its profile.

use std::{fs, process::Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::with_codec;
use crate::harness::{airlock, complaint, run};

const PROFILES: [(&str, &str); 4] = [
    ("11111111-1111-1111-1111-111111111111", "Meter"),
    ("22222222-2222-2222-2222-222222222222", "Door"),
    ("33333333-3333-3333-3333-333333333333", "Valve"),
    ("", ""),
];

fn uplink((id, name): (&str, &str)) -> String {
    let info = json!({"devEui": "0102030405060708", "deviceProfileId": id, "deviceProfileName": name});
    json!({"deviceInfo": info, "fPort": 2, "data": "CVw=", "object": {"is": name}}).to_string()
}

/// A directory with codecs for two of the profiles.
fn with_codecs() -> TempDir {
    let dir = with_codec();
    for name in ["Meter", "Door"] {
        let codec = format!("function decodeUplink() {{ return {{ data: {{ is: '{name}' }} }}; }}");
        fs::write(dir.path().join(format!("{name}.js")), codec).unwrap();
    }
    dir
}

/// The result of these codecs for an uplink of each profile.
fn replay(dir: &TempDir, codecs: &[&str]) -> Output {
    let mut command = airlock(dir.path());
    command.args(["replay", "--from", "-", "--json"]);
    command.args(codecs.iter().flat_map(|codec| ["--codec", codec]));
    run(&mut command, &PROFILES.map(uplink).join("\n"))
}

// Conformance: Each device profile of a network has its codec, and those without one are named
#[test]
fn each_profile_has_its_codec_and_those_without_one_are_named() {
    let dir = with_codecs();
    let found = |codecs: &[&str]| -> Value {
        let output = replay(&dir, codecs);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let report = found(&["meter=Meter.js", "22222222-2222-2222-2222-222222222222=Door.js"]);
    assert_eq!((&report["equal"], &report["without_codec"]), (&json!(2), &json!(2)), "{report:#}");
    assert_eq!(report["profiles_without_codec"], json!({"Valve": 1, "": 1}), "{report:#}");
    assert_eq!(report["codecs"][0]["profile"], "meter", "{report:#}");
    let report = found(&["Meter=Meter.js", "Door.js"]);
    assert_eq!((&report["equal"], &report["changed"], &report["without_codec"]), (&json!(2), &json!(2), &json!(0)));
    for (codecs, reason) in [
        (&["Meter.js", "Door.js"][..], "two codecs for all devices"),
        (&["Meter=Meter.js", "METER=Door.js"], "two codecs for the profile METER"),
        (&["=Door.js"], "as in Meter=meter.js"),
        (&["Meter=missing.js"], "missing.js"),
    ] {
        let output = replay(&dir, codecs);
        assert!(complaint(&output).contains(reason) && output.status.code() == Some(2), "{codecs:?}: {output:?}");
    }
}

// Conformance: Each device profile of a network has its codec, and those without one are named
#[test]
fn a_profile_that_no_uplink_has_is_named_beside_those_of_the_uplinks() {
    let dir = with_codecs();
    for codecs in [["Metre=Meter.js", "Door=Door.js"], ["Metre=Meter.js", "Door.js"]] {
        let output = replay(&dir, &codecs);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let all = json!({"": 1, "Door": 1, "Meter": 1, "Valve": 1});
        assert_eq!((&report["equal"], &report["profiles"]), (&json!(1), &all), "{codecs:?}: {report:#}");
        let expected = "no uplink has the profile `Metre`: check --codec; the profiles of the uplinks are none, `Door`, \
                        `Meter`, `Valve`";
        assert!(complaint(&output).contains(expected) && output.status.code() == Some(2), "{codecs:?}: {output:?}");
    }
    let mut command = airlock(dir.path());
    let output = run(command.args(["replay", "--from", "-", "--codec", "Metre=Meter.js"]), &uplink(PROFILES[3]));
    assert!(complaint(&output).contains("check --codec; the uplinks have no profiles"), "{output:?}");
    // Its id has precedence.
    let output = replay(&dir, &["11111111-1111-1111-1111-111111111111=Meter.js", "Meter=Door.js"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_name_of_a_profile_makes_no_line_of_its_own_in_an_error() {
    let dir = with_codecs();
    let mut command = airlock(dir.path());
    command.args(["replay", "--from", "-", "--json", "--codec", "Metre=Meter.js"]);
    let output = run(&mut command, &uplink(("", "Cellar\nerror: forged")));
    assert!(complaint(&output).contains("are `Cellar\u{fffd}error: forged`"), "{output:?}");
}
