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
