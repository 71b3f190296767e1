//! `airlock functions lint`: its exit code, and what it says of a line.

use std::{fs, process::Output};

use tempfile::TempDir;

use crate::harness::{airlock, complaint, printed, run};

/// Sloppy code: it runs where scripts run.
const CODEC: &str = "function decodeUplink(input) {
  level = input.bytes[0];
  return { data: { level: level } };
}
";

const EXAMPLES: &str = "examples:
  - { description: five, port: 1, bytes: '05', output: { data: { level: 5 } } }
";

fn dir() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("level.js"), CODEC).unwrap();
    fs::write(dir.path().join("level.test.yaml"), EXAMPLES).unwrap();
    dir
}

fn lint(dir: &TempDir, arguments: &[&str]) -> Output {
    let mut command = airlock(dir.path());
    run(command.current_dir(dir.path()).args(["functions", "lint"]).args(arguments), "")
}

// Conformance: functions lint
#[test]
fn only_a_target_that_is_named_can_fail() {
    let dir = dir();
    let report = printed(&lint(&dir, &["level.js"]));
    assert!(report.contains("  yes  chirpstack-4.16    1 of 1 examples run\n"), "{report}");
    let reason = "line 2: assigns `level`, which nothing declares, and strict code must (undeclared-variable)";
    assert!(report.contains(&format!("  no   chirpstack-4.17    1 of 1 examples run\n       {reason}\n")), "{report}");
    printed(&lint(&dir, &["level.js", "--target", "things-stack", "--target", "chirpstack-4.16"]));
    let failed = lint(&dir, &["level.js", "--target", "chirpstack-4.17", "--format", "github"]);
    assert_eq!(failed.status.code(), Some(1));
    let text = String::from_utf8_lossy(&failed.stdout);
    assert!(text.starts_with("::error file=level.js,line=2,title=level%2C chirpstack-4.17%3A undeclared"), "{text}");
}

#[test]
fn what_cannot_be_read_or_is_not_known_is_told() {
    let dir = dir();
    for (arguments, part) in [
        (&["level.js", "--target", "chirpstack"][..], "there is no target `chirpstack`: use one of chirpstack-4.16"),
        (&["level.js", "--format", "xml"], "there is no format `xml`: use one of human, json, markdown"),
        (&["nowhere.js"], "cannot read nowhere.js"),
        (&[".", "--filter", "other"], "no codec id contains `other`"),
    ] {
        let output = lint(&dir, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(complaint(&output).contains(part), "{}", complaint(&output));
    }
}

#[test]
fn a_script_may_come_from_standard_input() {
    let dir = dir();
    let typed = |arguments: &[&str], text: &str| {
        let mut command = airlock(dir.path());
        run(command.current_dir(dir.path()).arg("functions").args(arguments), text)
    };
    let report = printed(&typed(&["lint", "-"], CODEC));
    assert!(
        report.contains("-  no examples: judged by its text") && report.contains("line 2: assigns `level`"),
        "{report}"
    );
    assert!(typed(&["test", "-"], CODEC).status.success());
    let neither = typed(&["lint", "-"], "start();\n");
    assert!(complaint(&neither).contains("not a JSON object in one line"), "{}", complaint(&neither));
    let refused = typed(&["bench", "level.js", "--save-baseline", "-"], "");
    assert!(complaint(&refused).contains("name it, as in main"), "{}", complaint(&refused));
}
