//! Several codecs: each runs on the devices of its profile.

use std::fs;

use serde_json::{Value, json};

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

// Conformance: Each device profile of a network has its codec, and those without one are named
#[test]
fn each_profile_has_its_codec_and_those_without_one_are_named() {
    let dir = with_codec();
    for name in ["Meter", "Door"] {
        let codec = format!("function decodeUplink() {{ return {{ data: {{ is: '{name}' }} }}; }}");
        fs::write(dir.path().join(format!("{name}.js")), codec).unwrap();
    }
    let input = PROFILES.map(uplink).join("\n");
    let replay = |codecs: &[&str]| {
        let mut command = airlock(dir.path());
        command.args(["replay", "--from", "-", "--json"]);
        command.args(codecs.iter().flat_map(|codec| ["--codec", codec]));
        run(&mut command, &input)
    };
    let found = |codecs: &[&str]| -> Value {
        let output = replay(codecs);
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
        let output = replay(codecs);
        assert!(complaint(&output).contains(reason) && output.status.code() == Some(2), "{codecs:?}: {output:?}");
    }
}
