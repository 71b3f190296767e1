//! `airlock functions watch`: a verdict after each save, until a signal ends it.

use std::{
    fs,
    io::{BufRead, BufReader, Lines},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, ChildStdout, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{airlock, complaint, run};

const SCRIPT: &str = "function decodeUplink(input) {\n  return { data: { level: input.bytes[0] } };\n}\n";
const EXAMPLES: &str = "examples:\n  - { port: 1, bytes: '05', output: { data: { level: 5 } } }\n";

/// The command, as it watches a directory.
struct Watching {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(dir: &Path) -> Self {
        let mut command = airlock(dir);
        command.args(["functions", "watch", "."]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Returns its output until a line begins with `start`.
    fn until(&mut self, start: &str) -> String {
        let mut printed = String::new();
        for line in self.lines.by_ref().map_while(Result::ok) {
            printed += &format!("{line}\n");
            if line.starts_with(start) {
                return printed;
            }
        }
        panic!("it ended without {start}: {printed}");
    }
}

/// Saves a file in one step, so that nobody reads half of it.
fn save(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

#[test]
fn what_can_never_be_watched_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    for (path, told) in [("-", "standard input cannot be watched"), ("nowhere", "cannot read nowhere: No such file")] {
        let output = run(airlock(dir.path()).args(["functions", "watch", path]), "");
        assert!(output.status.code() == Some(2) && complaint(&output).contains(told), "{output:?}");
    }
}

// Conformance: functions watch, new
#[test]
fn each_save_has_its_verdict_until_a_signal_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let (script, examples) = (dir.path().join("level.js"), dir.path().join("level.test.yaml"));
    save(&script, SCRIPT);
    save(&examples, EXAMPLES);
    let mut watching = Watching::start(dir.path());
    assert!(watching.until("Watching for changes").contains("PASSED  1 codec, 1 example, 0 failed"));

    save(&script, &SCRIPT.replace("[0]", ".oops.more"));
    let printed = watching.until("FAILED");
    assert!(printed.contains("FAIL  level") && printed.contains("2 |   return { data"), "{printed}");
    assert!(printed.contains("codecs that fail: level"), "{printed}");
    save(&script, SCRIPT);
    assert!(watching.until("PASSED").contains("ok    level  1 passed"));
    save(&examples, "examples: [");
    assert!(watching.until("INVALID").contains("; not valid: level.test.yaml\n"));
    // It stays so while something else passes.
    save(&dir.path().join("other.js"), SCRIPT);
    save(&dir.path().join("other.test.yaml"), EXAMPLES);
    assert!(watching.until("INVALID").contains("; not valid: level.test.yaml\n"));
    save(&examples, EXAMPLES);
    watching.until("PASSED");

    // Not that of Ctrl-C, which programs in the background ignore, and with them this test.
    kill_process(Pid::from_child(&watching.child), Signal::TERM).unwrap();
    assert_eq!(watching.child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
}
