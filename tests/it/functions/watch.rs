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

    /// What it prints until a line begins with this.
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

#[test]
fn what_can_never_be_watched_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    for (path, told) in [("-", "standard input cannot be watched"), ("nowhere", "cannot read nowhere: No such file")] {
        let output = run(airlock(dir.path()).args(["functions", "watch", path]), "");
        assert!(output.status.code() == Some(2) && complaint(&output).contains(told), "{output:?}");
    }
}

#[test]
fn each_save_has_its_verdict_until_a_signal_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let (script, examples) = (dir.path().join("level.js"), dir.path().join("level.test.yaml"));
    fs::write(&script, SCRIPT).unwrap();
    fs::write(&examples, EXAMPLES).unwrap();
    let mut watching = Watching::start(dir.path());
    assert!(watching.until("Watching for changes").contains("PASSED  1 codecs, 1 examples, 0 failed"));

    fs::write(&script, SCRIPT.replace("[0]", ".oops.more")).unwrap();
    let printed = watching.until("FAILED");
    assert!(printed.contains("FAIL  level") && printed.contains("2 |   return { data"), "{printed}");
    assert!(printed.contains("codecs that fail: level"), "{printed}");
    fs::write(&script, SCRIPT).unwrap();
    assert!(watching.until("PASSED").contains("ok    level  1 passed"));
    fs::write(&examples, "examples: [").unwrap();
    assert!(watching.until("INVALID").contains("; not valid: level.test.yaml\n"));
    // It stays so while something else passes.
    fs::write(dir.path().join("other.js"), SCRIPT).unwrap();
    fs::write(dir.path().join("other.test.yaml"), EXAMPLES).unwrap();
    assert!(watching.until("INVALID").contains("; not valid: level.test.yaml\n"));
    fs::write(&examples, EXAMPLES).unwrap();
    watching.until("PASSED");

    // Not that of Ctrl-C, which programs in the background ignore, and with them this test.
    kill_process(Pid::from_child(&watching.child), Signal::TERM).unwrap();
    assert_eq!(watching.child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
}
