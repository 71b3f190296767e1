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

// Conformance: functions test: coverage
#[test]
fn too_little_coverage_ends_with_an_error() {
    let dir = dir_with("  - { port: 1, bytes: '05', output: { data: { level: 5 } } }\n");
    let test = |option: &str| run(airlock(dir.path()).args(["functions", "test", option, "."]), "");
    for option in ["--coverage", "--coverage=50", "--coverage=50%"] {
        let out = printed(&test(option));
        assert!(
            out.contains("coverage of level.js: 66.6% of lines, 50.0% of branches\n      lines not reached: 3\n"),
            "{out}"
        );
        assert!(out.ends_with("coverage: 66.6% of lines (2 of 3), 50.0% of branches (1 of 2)\n"), "{out}");
    }
    let output = test("--coverage=50.1");
    let told = "examples reach 66.6% of lines and 50.0% of branches, less than 50.1%";
    assert!(output.status.code() == Some(1) && complaint(&output).contains(told), "{output:?}");
    let reports = ["--coverage=50.1", "--format", "markdown", "--report", "html=report.html", "."];
    let output = run(airlock(dir.path()).args(["functions", "test"]).args(reports), "");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("### ❌ "), "{output:?}");
    assert!(fs::read_to_string(dir.path().join("report.html")).unwrap().contains("Too little is tested."));
    let output = run(airlock(dir.path()).args(["functions", "test", ".", "--coverage", "85"]), "");
    assert!(output.status.code() == Some(2) && complaint(&output).contains("write --coverage=85"), "{output:?}");
    let output = test("--coverage=101");
    assert!(output.status.code() == Some(2) && complaint(&output).contains("as in 85%"), "{output:?}");
    assert!(!printed(&run(airlock(dir.path()).args(["functions", "test", "."]), "")).contains("coverage"));
}

#[test]
fn a_report_replaces_nothing_that_is_tested_and_only_at_the_end() {
    let dir = dir_with("  - { port: 1, bytes: '05', output: { data: { level: 5 } } }\n");
    fs::write(dir.path().join("report.html"), "old").unwrap();
    let test = |arguments: &[&str]| run(airlock(dir.path()).args(["functions", "test", "."]).args(arguments), "");
    for (arguments, told) in [
        (&["--report", "html=./level.js"][..], "./level.js is tested: name another file for the report"),
        (&["--report", "html=level.test.yaml"], "level.test.yaml is tested"),
        (&["--report", "html=report.html", "--report", "tap=report.html"], "report.html is named for two reports"),
        (&["--report", "html=no/report.html"], "cannot write no/report.html: No such file"),
        (&["--report", "html="], "the file is missing after `=`"),
    ] {
        let output = test(arguments);
        assert!(output.status.code() == Some(2) && complaint(&output).contains(told), "{output:?}");
    }
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!((read("level.js").as_str(), read("report.html").as_str()), (SCRIPT, "old"));
    printed(&test(&["--report", "html=report.html"]));
    assert!(read("report.html").contains("</html>") && read("report.html").starts_with("<!"));
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with(".tmp")));
}

// Conformance: functions test, bench, profile: reports for people
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
