//! `airlock demo`.

use crate::harness::{airlock, complaint, printed, run};

#[test]
fn shows_the_requested_number_of_uplinks() {
    let dir = tempfile::tempdir().unwrap();
    let out = printed(&run(airlock(dir.path()).args(["demo", "--count", "6"]), ""));
    let uplinks: Vec<_> = out.lines().filter(|line| line.contains(" fuel")).collect();
    assert_eq!(uplinks.len(), 6, "{out}");
    for device in ["cold-room", "greenhouse", "water-meter"] {
        assert_eq!(uplinks.iter().filter(|line| line.contains(device)).count(), 2, "{out}");
    }
    assert!(out.contains("dew_point") && out.contains("6 uplinks arrived"), "{out}");
}

#[test]
fn runs_a_decoder_of_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let decoder = dir.path().join("mine.js");
    std::fs::write(&decoder, "function decodeUplink(input) { return { data: { sum: input.bytes[0] + input.fPort } } }")
        .unwrap();
    let arguments = ["demo", "--count", "2", "--payload", "0a ff", "--port", "5", "--decoder"];
    let out = printed(&run(airlock(dir.path()).args(arguments).arg(&decoder), ""));
    assert_eq!(out.matches(r#"{"sum":15}"#).count(), 2, "{out}");
}

#[test]
fn plays_a_chirpstack_server_and_says_how_to_use_ones_own() {
    let dir = tempfile::tempdir().unwrap();
    let out = printed(&run(airlock(dir.path()).args(["demo", "--chirpstack", "--count", "8"]), ""));
    let uplinks: Vec<_> = out.lines().filter(|line| line.contains(" µs, ") && line.ends_with(" fuel")).collect();
    assert_eq!(uplinks.len(), 8, "{out}");
    for (device, member) in
        [("Greenhouse", "temperature"), ("Tank", "level"), ("Water meter", "litres"), ("Front door", "openings")]
    {
        let of_device = uplinks.iter().filter(|line| line.contains(device) && line.contains(member));
        assert_eq!(of_device.count(), 2, "{out}");
    }
    assert!(out.contains("bridge chirpstack --shadow --mqtt") && out.contains("8 uplinks were decoded"), "{out}");
    let arguments = ["demo", "--chirpstack", "--decoder", "x.js", "--payload", "00"];
    let error = complaint(&run(airlock(dir.path()).args(arguments), ""));
    assert!(error.contains("cannot be used with"), "{error}");
}

#[test]
fn fails_when_the_decoder_fails() {
    let dir = tempfile::tempdir().unwrap();
    let decoder = dir.path().join("mine.js");
    std::fs::write(&decoder, "function Decoder(bytes) {\n  return bytes.no.such;\n}").unwrap();
    let arguments = ["demo", "--count", "2", "--payload", "00", "--decoder"];
    let output = run(airlock(dir.path()).args(arguments).arg(&decoder), "");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(out.contains("error: Unable to decode payload fields") && out.contains("line 2"), "{out}");
    assert!(complaint(&output).contains("2 of 2 uplinks did not arrive with the right fields"));
}

#[test]
fn refuses_invalid_scripts_and_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let decoder = dir.path().join("mine.js");
    std::fs::write(&decoder, "function Decoder(bytes) {\n  return {;\n}").unwrap();
    let mut command = airlock(dir.path());
    let error = complaint(&run(command.args(["demo", "--payload", "00", "--decoder"]).arg(&decoder), ""));
    assert!(error.contains("the decoder cannot be loaded (line 2, column 10)"), "{error}");
    let mut command = airlock(dir.path());
    let error = complaint(&run(command.args(["demo", "--payload", "0g", "--decoder"]).arg(&decoder), ""));
    assert!(error.contains("hexadecimal"), "{error}");
}
