//! `tests/retry.py`, which runs a failed test once more, with a script that stands in for Cargo.

use std::{fs, path::Path, process::Command};

/// Prints one file when it runs all tests, and another when it runs one; fails where that has an error. It may leave a
/// process behind, which prints until nobody reads it.
const CARGO: &str = r#"
echo "$@" >>calls
case "$*" in *--exact*) file=again ;; *) file=first ;; esac
cat $file
if grep -q "^leaves a process" $file; then yes & fi
if grep -q "^error: [a-z]" $file; then exit 101; fi
"#;

const PASSED: &str = r"     Running tests/it/main.rs (target/debug/deps/it-1)

running 1 test
test two ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.01s

";

const FAILED: &str = r"     Running tests/it/main.rs (target/debug/deps/it-1)

running 2 tests
test one ... ok
test two ... FAILED

failures:

---- two stdout ----

thread 'two' (7) panicked at tests/it/two.rs:1:1:
left is not right


failures:
    two

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

error: test failed, to rerun pass `-p airlock-mqtt --test it`
error: 1 target failed:
    `-p airlock-mqtt --test it`
";

const FAILED_SUMMARY: &str = "error: 1 target failed:\n    `-p airlock-mqtt --test it`\n";

struct Ran {
    code: Option<i32>,
    output: String,
    summary: String,
    /// The arguments of each call of Cargo.
    calls: Vec<String>,
}

/// Runs tests of which Cargo prints `first`, and `again` for one alone. `None` without Python.
fn run(first: &str, again: &str) -> Option<Ran> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("cargo", CARGO), ("first", first), ("again", again)] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let mut command = Command::new("python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/retry.py"));
    command.args(["summary", "sh", "cargo", "test", "--lib", "--tests", "--", "some"]).current_dir(dir.path());
    let Ok(ran) = command.output() else {
        testing::skip("python3 is missing", "install python3");
        return None;
    };
    let text = |name| fs::read_to_string(dir.path().join(name)).unwrap();
    assert!(ran.stderr.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(Ran {
        code: ran.status.code(),
        output: String::from_utf8(ran.stdout).unwrap(),
        summary: text("summary"),
        calls: text("calls").lines().map(str::to_owned).collect(),
    })
}

#[test]
fn a_run_that_passes_is_printed_as_it_is() {
    let Some(ran) = run(PASSED, FAILED) else { return };
    assert_eq!((ran.code, ran.output + &ran.summary), (Some(0), PASSED.to_owned()));
    assert_eq!(ran.calls, ["test --lib --tests some"]);
}

#[test]
fn a_process_that_is_left_running_does_not_keep_the_run_from_ending() {
    let Some(ran) = run(&format!("{PASSED}leaves a process\n"), FAILED) else { return };
    assert_eq!(ran.code, Some(0));
    assert!(ran.output.contains("test two ... ok\n") && ran.output.contains("leaves a process\n"));
}

#[test]
fn what_looks_like_a_summary_holds_back_no_output() {
    let first = PASSED.replace("test two", "error: 1 target failed:\ntest two");
    let Some(ran) = run(&first, FAILED) else { return };
    assert_eq!((ran.code, ran.output.matches("test two ... ok").count()), (Some(0), 1), "{}", ran.output);
    assert!(ran.summary.starts_with("test result: ok. 1 passed"), "{}", ran.summary);
}

#[test]
fn a_test_that_passes_alone_is_listed_as_flaky() {
    let Some(ran) = run(FAILED, PASSED) else { return };
    let (_, flaky) = ran.output.split_once("\nFlaky").expect("a list");
    assert!(flaky.contains("-p airlock-mqtt --test it: two\n") && flaky.contains("left is not right"), "{flaky}");
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.summary.matches("test result: ok. 1 passed; 0 failed").count(), 1, "{}", ran.summary);
    assert_eq!(ran.calls, ["test --lib --tests some", "test --test it -- --exact two"]);
}

#[test]
fn a_test_that_fails_again_fails_the_run() {
    let Some(ran) = run(FAILED, FAILED) else { return };
    assert!(ran.output.contains("It failed again") && !ran.output.contains("\nFlaky"), "{}", ran.output);
    assert_eq!((ran.code, ran.summary.as_str(), ran.calls.len()), (Some(101), FAILED_SUMMARY, 2));
}

#[test]
fn a_test_that_does_not_run_again_fails_the_run() {
    let Some(ran) = run(FAILED, &PASSED.replace("1 passed", "0 passed")) else { return };
    assert_eq!((ran.code, ran.summary.as_str(), ran.calls.len()), (Some(101), FAILED_SUMMARY, 2));
}

#[test]
fn what_is_more_than_a_failed_test_fails_the_run_at_once() {
    let crash = "it`\n\nCaused by:\n  process didn't exit successfully: `it-1` (signal: 11, \
                 SIGSEGV: invalid memory reference)\nerror: 1";
    let crashed = FAILED.replace("it`\nerror: 1", crash);
    let with_log = crashed.replace("it`\n\nCaused", "it`\nINFO of a process that was left running\n\nCaused");
    assert_ne!(with_log, crashed);
    let unnamed = FAILED.replace("1 passed; 1 failed", "1 passed; 2 failed");
    let names: String = (0..11).map(|number| format!("    test_{number}\n")).collect();
    let many = FAILED.replace("    two\n", &names).replace("1 passed; 1 failed", "1 passed; 11 failed");
    for first in [crashed.as_str(), &with_log, &unnamed, &many, "error: could not compile `airlock-mqtt` (lib)\n"] {
        let Some(ran) = run(first, PASSED) else { return };
        assert_eq!((ran.code, ran.calls.len()), (Some(101), 1), "{first}");
    }
}
