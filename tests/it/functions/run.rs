//! `airlock functions run` and `bench`, and invalid uses of them.

use std::{fs, path::Path, process::Output};

use super::dir_with;
use crate::harness::{airlock, complaint, printed, run};

/// Files next to `level.js`.
const FILES: &[(&str, &[u8])] = &[
    ("empty.js", b""),
    ("blank.js", b" \n\t\n"),
    ("other.js", b"function decode() {}"),
    ("encoder.js", b"function Encoder(fields) { return [fields.led ? 1 : 0] }"),
    ("latin.js", b"// \xe9"),
];

/// Invalid arguments, part of the error, and the exit code.
const WRONG: &[(&[&str], &str, i32)] = &[
    (&["level.js"], "<--hex <HEX>|--fields <JSON>>", 2),
    (&[], "<FILE>", 2),
    (&["level.js", "0a"], "<--hex <HEX>|--fields <JSON>> <FILE>", 2),
    (&["level.js", "--hex", "0a", "--fields", "{}"], "cannot be used with", 2),
    (&["level.js", "--hex", "0"], "odd number of hexadecimal digits; write two per byte, like 01af", 2),
    (&["level.js", "--hex", "0x0a"], "`x` is not a hexadecimal digit; write bytes like 01af", 2),
    (&["level.js", "--hex", "0a", "--port", "256"], "256 is not in 0..=255", 2),
    (&["level.js", "--hex", "0a", "--dialect", "v3"], "[possible values: ts013, v2, chirpstack3]", 2),
    (&["level.js", "--hex", "0a", "--time", "today"], "a zone, as in 2026-01-01T00:00:00Z", 2),
    (&["level.js", "--hex", "0a", "--time", "2026-01-01"], "a zone, as in 2026-01-01T00:00:00Z", 2),
    (&["encoder.js", "--fields", "led"], "fields must be a JSON object, as in '{\"led\": true}'", 2),
    (&["encoder.js", "--fields", "[1]"], "fields must be a JSON object, as in '{\"led\": true}'", 2),
    (&["encoder.js", "--fields", ""], "fields must be a JSON object, as in '{\"led\": true}'", 2),
    (&["level.js", "--fields", "{}", "--converter", "level.js"], "cannot be used with", 2),
    (&["nowhere.js", "--hex", "0a"], "cannot read nowhere.js: No such file", 1),
    (&[".", "--hex", "0a"], "cannot read .: Is a directory", 1),
    (&["latin.js", "--hex", "0a"], "cannot read latin.js: it is not UTF-8", 1),
    (
        &["empty.js", "--hex", "0a"],
        "empty.js: the file is empty; expected a function named `decodeUplink`, `Decoder`",
        1,
    ),
    (&["blank.js", "--hex", "0a"], "no decoder in blank.js: the file is empty", 1),
    (&["empty.js", "--fields", "{}"], "expected a function named `encodeDownlink`, `Encoder`, `Encode`", 1),
    (&["-", "--hex", "0a"], "no decoder in -: the file is empty", 1),
    (&["level.js", "--hex", "0a", "--validator", "empty.js"], "expected a function named `Validator`", 1),
    (&["level.js", "--hex", "0a", "--converter", "-", "--validator", "-"], "standard input can be only one", 1),
    (&["other.js", "--hex", "0a"], "expected one named `decodeUplink`, `Decoder`, `Decode`\n", 1),
    (&["encoder.js", "--hex", "0a"], "it is an encoder, which needs --fields", 1),
    (&["level.js", "--fields", "{}"], "it is a decoder, which needs --hex", 1),
    (&["level.js", "--hex", "0a", "--style", "v2"], "expected one named `Decoder`\n", 1),
];

#[test]
fn run_processes_a_message_as_the_server_does() {
    let dir = dir_with(&[]);
    let call = |arguments: &[&str]| call(dir.path(), &[&["level.js"], arguments].concat(), "");
    let shown = printed(&call(&["--hex", "0a"]));
    assert!(shown.starts_with("{\"level\":10}\n") && shown.contains("fuel"), "{shown}");
    let output = call(&["--hex", "0a", "--port", "2"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("decoder logged: \"wrong port\" 2"));
    let error = complaint(&output);
    assert!(error.contains("the decoder failed (line 4, column 12)"), "{error}");
    assert!(error.ends_with("4 |     return nowhere;\n  |            ^\n"), "{error}");
}

#[test]
fn fields_may_have_lone_surrogates() {
    let dir = dir_with(&[]);
    let encoder = "function Encoder(fields) { return [fields['\\ud800'].charCodeAt(0) >> 8]; }";
    let shown = printed(&call(dir.path(), &["-", "--fields", r#"{"\ud800": "\udc00"}"#], encoder));
    assert!(shown.starts_with("dc\n"), "{shown}");
}

#[test]
fn reads_a_function_from_standard_input() {
    let dir = dir_with(&[]);
    let decoder = "function Decoder(bytes, port) { return { port: port } }";
    assert!(printed(&call(dir.path(), &["-", "--hex", "", "--port", "7"], decoder)).starts_with("{\"port\":7}\n"));
    let validator = "function Validator(fields) { return fields.level < 10 }";
    let shown = printed(&call(dir.path(), &["level.js", "--hex", "0a", "--validator", "-"], validator));
    assert!(shown.contains("not valid: it would not be published"), "{shown}");
}

#[test]
fn errors_say_what_would_be_valid() {
    let dir = dir_with(&[]);
    for (name, text) in FILES {
        fs::write(dir.path().join(name), text).unwrap();
    }
    for (arguments, told, code) in WRONG {
        let output = call(dir.path(), arguments, "");
        let error = complaint(&output);
        assert!(error.contains(told), "{arguments:?}: {told} in\n{error}");
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}");
    }
}

#[test]
fn bench_measures_time_fuel_and_memory() {
    let dir = dir_with(&[]);
    let arguments = ["functions", "bench", "level.js", "--hex", "0a", "--count", "20"];
    let shown = printed(&run(airlock(dir.path()).args(arguments), ""));
    for name in ["messages: 20", "median: ", "p99: ", "fuel: ", "idle memory: "] {
        assert!(shown.contains(name), "{name} in\n{shown}");
    }
}

fn call(dir: &Path, arguments: &[&str], input: &str) -> Output {
    run(airlock(dir).args(["functions", "run"]).args(arguments), input)
}
