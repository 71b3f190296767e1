//! `airlock functions fuzz`: findings, the same ones again, and examples of them.

use std::{fs, path::Path, process::Output};

use serde_json::Value;

use crate::harness::{airlock, complaint, printed, run};

const CODEC: &str = "function decodeUplink(input) {
  if (input.fPort === 85) {
    return { data: { text: input.bytes[1].toString() } };
  }
  return { data: { length: input.bytes.length } };
}
";

fn fuzz(dir: &Path, options: &[&str]) -> Output {
    let mut command = airlock(dir);
    run(command.current_dir(dir).args(["functions", "fuzz", "--count", "500"]).args(options), "")
}

// Conformance: functions fuzz
#[test]
fn fuzz_reports_and_saves_what_breaks_a_function() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("meter.js"), CODEC).unwrap();
    assert!(printed(&fuzz(dir.path(), &["meter.js"])).contains("calls, seed 1"));

    let output = fuzz(dir.path(), &["meter.js", "--ports", "2,85", "--seed", "7"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("FAIL") && text.contains("seed 7"), "{text}");
    assert!(text.contains("throws      uplink, port 85, no bytes") && text.contains("3 |     return"), "{text}");
    assert!(complaint(&output).contains("1 finding; 1 of 1 codecs failed"));
    assert_eq!(output.status.code(), Some(1));
    let again = fuzz(dir.path(), &["meter.js", "--ports", "2,85", "--seed", "7"]);
    assert_eq!(again.stdout, output.stdout);

    let json = fuzz(dir.path(), &["meter.js", "--port", "85", "--save", "--format", "json"]);
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&report["findings"][0]["kind"], &report["findings"][0]["bytes"]), (&"throws".into(), &"".into()));
    assert!(complaint(&json).contains("added 1 example to meter.test.yaml"));
    let tested = run(airlock(dir.path()).current_dir(dir.path()).args(["functions", "test", "."]), "");
    assert_eq!(tested.status.code(), Some(1));

    let saved = fs::read_to_string(dir.path().join("meter.test.yaml")).unwrap();
    fuzz(dir.path(), &["meter.js", "--save"]);
    assert_eq!(fs::read_to_string(dir.path().join("meter.test.yaml")).unwrap(), saved);
}

// Conformance: functions fuzz
#[test]
fn fuzz_refuses_what_it_cannot_read() {
    let dir = tempfile::tempdir().unwrap();
    let output = fuzz(dir.path(), &["missing.js"]);
    assert!(complaint(&output).contains("cannot read missing.js"));
    assert_eq!(output.status.code(), Some(2));
    for options in [["meter.js", "--ports", "256"], ["meter.js", "--max-length", "243"], ["meter.js", "--count", "0"]] {
        assert_eq!(fuzz(dir.path(), &options).status.code(), Some(2), "{options:?}");
    }
}
