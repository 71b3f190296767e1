//! `airlock functions port`: the text that it writes, and its report on the proof.

use std::{fs, process::Output};

use tempfile::TempDir;

use crate::harness::{airlock, complaint, printed, run};

const CODEC: &str = "function Decoder(bytes, port) {
  level = bytes[0];
  return { level: level };
}
";

const EXAMPLES: &str = "examples:
  - { description: five, port: 1, bytes: '05', output: { level: 5 } }
";

fn dir(script: &str, examples: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("level.js"), script).unwrap();
    fs::write(dir.path().join("level.test.yaml"), examples).unwrap();
    dir
}

fn port(dir: &TempDir, arguments: &[&str]) -> Output {
    let mut command = airlock(dir.path());
    run(command.current_dir(dir.path()).args(["functions", "port", "level.js"]).args(arguments), "")
}

/// Returns its output besides the text.
fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// Conformance: functions port
#[test]
fn a_port_is_written_with_its_proof() {
    let dir = dir(CODEC, EXAMPLES);
    let output = port(&dir, &["--to", "chirpstack-4.17"]);
    let text = printed(&output);
    assert!(text.starts_with("var level;\n") && text.contains("function decodeUplink(input)"), "{text}");
    let told = told(&output);
    for part in ["declared level", "added `decodeUplink`, which calls `Decoder`", "examples that agree: 1 of 1"] {
        assert!(told.contains(part), "{told}");
    }
    printed(&port(&dir, &["--to", "chirpstack-4.17", "--output", "ported.js"]));
    assert_eq!(fs::read_to_string(dir.path().join("ported.js")).unwrap(), text);
    assert_eq!(printed(&port(&dir, &["--to", "chirpstack-4.17", "--output", "-"])), text);
    assert!(!dir.path().join("-").exists());
}

#[test]
fn without_examples_it_says_that_nothing_is_proved() {
    let output = port(&dir(CODEC, "examples: []"), &["--to", "chirpstack-3"]);
    assert!(printed(&output).contains("function Decode("));
    assert!(told(&output).contains("nothing was proved: the codec has no examples"), "{}", told(&output));
}

// Conformance: functions port
#[test]
fn nothing_is_written_for_an_engine_that_is_too_old() {
    let dir = dir(&CODEC.replace("  level", "  const level"), EXAMPLES);
    let output = port(&dir, &["--to", "chirpstack-3", "--output", "ported.js"]);
    assert_eq!(output.status.code(), Some(1));
    let told = complaint(&output);
    assert!(told.contains("line 2: otto (ES5) has no `const` (newer-syntax)"), "{told}");
    assert!(
        told.contains("nothing was written: 1 thing keeps it from running on")
            && !dir.path().join("ported.js").exists(),
        "{told}"
    );
}
