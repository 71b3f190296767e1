//! `airlock functions test --coverage`, and colours at a terminal.

use std::fs;

use tempfile::TempDir;

use crate::harness::{airlock, at_terminal, complaint, printed, run};

/// Of three lines and two branches, the example reaches two and one.
const SCRIPT: &str = "function decodeUplink(input) {
  if (input.fPort === 2) {
    return { data: { level: level } };
  }
  return { data: { level: input.bytes[0] } };
}
";

fn dir_with(examples: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("level.js"), SCRIPT).unwrap();
    fs::write(dir.path().join("level.test.yaml"), format!("examples:\n{examples}")).unwrap();
    dir
}

#[test]
fn too_little_coverage_ends_with_an_error() {
    let dir = dir_with("  - { port: 1, bytes: '05', output: { data: { level: 5 } } }\n");
    let test = |option: &str| run(airlock(dir.path()).args(["functions", "test", option, "."]), "");
    for option in ["--coverage", "--coverage=50", "--coverage=50%"] {
        let out = printed(&test(option));
        assert!(
            out.contains("coverage of level.js: 66.7% of lines, 50.0% of branches\n      lines not reached: 3\n"),
            "{out}"
        );
        assert!(out.ends_with("coverage: 66.7% of lines (2 of 3), 50.0% of branches (1 of 2)\n"), "{out}");
    }
    let output = test("--coverage=50.1");
    let told = "examples reach 66.7% of lines and 50.0% of branches, less than 50.1%";
    assert!(output.status.code() == Some(1) && complaint(&output).contains(told), "{output:?}");
    let output = test("--coverage=101");
    assert!(output.status.code() == Some(2) && complaint(&output).contains("as in 85%"), "{output:?}");
    assert!(!printed(&run(airlock(dir.path()).args(["functions", "test", "."]), "")).contains("coverage"));
}

#[test]
fn verdicts_and_carets_have_colours_at_a_terminal_only() {
    let dir = dir_with("  - { port: 2, bytes: '05', output: {} }\n");
    let shown = |line: &str| {
        let output = at_terminal(&airlock(dir.path()), line, dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stdout).unwrap().replace('\r', "")
    };
    let coloured = shown("$AIRLOCK functions test .");
    assert!(coloured.contains("\u{1b}[31mFAIL\u{1b}[0m  level  1 failed"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[31m^\u{1b}[0m\n"), "{coloured:?}");
    for line in
        ["NO_COLOR=1 $AIRLOCK functions test . 2>/dev/null", "$AIRLOCK functions test . 2>/dev/null | cat; false"]
    {
        let plain = shown(line);
        assert!(plain.contains("FAIL  level  1 failed") && !plain.contains('\u{1b}'), "{plain:?}");
    }
}
