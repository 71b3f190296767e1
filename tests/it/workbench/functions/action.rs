//! The composite action in this repository, as far as it runs outside of GitHub: its last step.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::harness::{airlock, inherit_environment};

const ACTION: &str = include_str!("../../../../action.yml");

/// Returns the script of the last step.
fn script() -> String {
    let (_, step) = ACTION.rsplit_once("      run: |\n").unwrap();
    let (script, environment) = step.split_once("      env:\n").unwrap();
    for name in ["PATHS", "ARGUMENTS", "REPORT", "BINARY"] {
        assert!(
            environment.contains(&format!("        {name}: ${{{{ inputs.{} }}}}\n", name.to_lowercase())),
            "{name}"
        );
    }
    script.replace("\n        ", "\n").trim().to_owned()
}

/// Runs the step in `dir`, as GitHub does.
fn step(dir: &Path, paths: &str, arguments: &str) -> Output {
    bash(dir, paths, arguments).env("GITHUB_STEP_SUMMARY", dir.join("summary.md")).output().unwrap()
}

fn bash(dir: &Path, paths: &str, arguments: &str) -> Command {
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script()]).current_dir(dir);
    inherit_environment(&mut bash, &airlock(dir));
    bash.envs([("PATHS", paths), ("ARGUMENTS", arguments), ("REPORT", "report.html")]);
    bash.env("BINARY", env!("CARGO_BIN_EXE_airlock"));
    bash
}

#[test]
fn without_a_summary_the_codecs_are_tested_nevertheless() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("level.js"), "function decodeUplink() { return { data: {} }; }").unwrap();
    fs::write(dir.path().join("level.test.yaml"), "examples: [{ bytes: '', output: { data: {} } }]").unwrap();
    for summary in [None, Some("")] {
        let mut bash = bash(dir.path(), ".", "");
        bash.env_remove("GITHUB_STEP_SUMMARY").envs(summary.map(|summary| ("GITHUB_STEP_SUMMARY", summary)));
        let output = bash.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("passed: 1, failed: 0"), "{output:?}");
    }
}

// Conformance: The action for GitHub
#[test]
fn a_given_binary_annotates_lines_and_writes_a_summary() {
    let dir = tempfile::tempdir().unwrap();
    let script = "function decodeUplink(input) {\n  return { data: { level: input.bytes[0] } };\n}\n";
    fs::write(dir.path().join("level.js"), script).unwrap();
    let examples =
        |level: u8| format!("examples:\n  - {{ port: 1, bytes: '05', output: {{ data: {{ level: {level} }} }} }}\n");
    fs::write(dir.path().join("level.test.yaml"), examples(5)).unwrap();
    let summary = || fs::read_to_string(dir.path().join("summary.md")).unwrap();
    let output = step(dir.path(), ".", "");
    assert!(output.status.success() && summary().starts_with("### ✅ "), "{output:?}");

    fs::write(dir.path().join("level.test.yaml"), examples(6)).unwrap();
    // Nothing in an input is evaluated.
    let output = step(dir.path(), ".\n$(touch evaluated) ;touch", "--filter level --coverage");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        out.contains("::error file=level.test.yaml,line=2,title=level%2C example 1::data.level: expected 6"),
        "{out}"
    );
    assert!(!dir.path().join("evaluated").exists());
    let summary = summary();
    assert!(summary.starts_with("### ❌ ") && summary.contains("- coverage: 100.0% of lines"), "{summary}");
    assert!(summary.contains("| level | example 1 | data.level: expected 6, got 5 | "), "{summary}");
    assert!(fs::read_to_string(dir.path().join("report.html")).unwrap().contains("Some examples did not return"));
}
