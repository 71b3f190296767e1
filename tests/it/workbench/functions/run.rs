//! `airlock functions run` and `bench`, and invalid uses of them.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

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
    (&["level.js"], "<--hex <HEX>|--base64 <BASE64>|--fields <JSON>|--message <FILE>|--stream>", 2),
    (&[], "<FILE>", 2),
    (&["level.js", "0a"], "<--hex <HEX>|--base64 <BASE64>|--fields <JSON>|--message <FILE>|--stream> <FILE>", 2),
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
    (&["level.js", "--base64", "0a!"], "Base64 has letters, digits, `+`, `/` and `=` at its end, as in CVw=", 2),
    (&["level.js", "--base64", "Cg==", "--message", "-"], "cannot be used with", 2),
    (&["level.js", "--message", "level.js"], "level.js is not an uplink: not JSON", 2),
    (&["-", "--message", "-"], "`-` appears more than once", 2),
    (&["nowhere.js", "--hex", "0a"], "cannot read nowhere.js: No such file", 2),
    (&[".", "--hex", "0a"], "cannot read .: Is a directory", 2),
    (&["latin.js", "--hex", "0a"], "cannot read latin.js: it is not UTF-8", 2),
    (
        &["empty.js", "--hex", "0a"],
        "empty.js: the file is empty; expected a function named `decodeUplink`, `Decoder`",
        2,
    ),
    (&["blank.js", "--hex", "0a"], "no decoder in blank.js: the file is empty", 2),
    (&["empty.js", "--fields", "{}"], "expected a function named `encodeDownlink`, `Encoder`, `Encode`", 2),
    (&["-", "--hex", "0a"], "no decoder in standard input: the file is empty", 2),
    (&["level.js", "--hex", "0a", "--validator", "empty.js"], "expected a function named `Validator`", 2),
    (&["level.js", "--hex", "0a", "--converter", "-", "--validator", "-"], "standard input can be only one", 2),
    (&["other.js", "--hex", "0a"], "expected one named `decodeUplink`, `Decoder`, `Decode`\n", 1),
    (&["encoder.js", "--hex", "0a"], "it is an encoder, which needs --fields", 1),
    (&["level.js", "--fields", "{}"], "it is a decoder, which needs --hex", 1),
    (&["level.js", "--hex", "0a", "--style", "v2"], "expected one named `Decoder`\n", 1),
];

// Conformance: functions run, on payloads and on what networks report
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
fn a_function_of_several_files_runs_whole() {
    let dir = tempfile::tempdir().unwrap();
    let script =
        "var util = require('./util');\nfunction decodeUplink(input) { return { data: util.read(input.bytes) }; }";
    fs::write(dir.path().join("decoder.js"), script).unwrap();
    let command = |name: &str| {
        let mut command = airlock(dir.path());
        run(command.current_dir(dir.path()).args(["functions", name, "decoder.js", "--hex", "05"]), "")
    };
    assert!(complaint(&command("run")).contains("require is not defined"), "there is no such file");
    fs::write(dir.path().join("util.js"), "exports.read = function (bytes) { return { level: bytes[0] }; };").unwrap();
    assert!(printed(&command("run")).contains(r#"{"level":5}"#));
    assert!(printed(&command("profile")).contains("exports.read"));
}

// Conformance: functions run, on payloads and on what networks report
#[test]
fn runs_what_a_network_reports() {
    let dir = dir_with(&[]);
    let decoder = "function Decoder(bytes, port) { return { n: bytes[0], port: port, at: new Date().toISOString() } }";
    fs::write(dir.path().join("at.js"), decoder).unwrap();
    let message = r#"{"received_at": "2026-01-02T03:04:05Z", "uplink_message": {"f_port": 9, "frm_payload": "Cg=="}}"#;
    let shown = printed(&call(dir.path(), &["at.js", "--message", "-"], message));
    assert!(shown.starts_with("{\"n\":10,\"port\":9,\"at\":\"2026-01-02T03:04:05.000Z\"}\n"), "{shown}");
    let own = ["at.js", "--message", "-", "--port", "3", "--time", "2026-05-05T00:00:00Z"];
    let shown = printed(&call(dir.path(), &own, message));
    assert!(shown.contains("\"port\":3,\"at\":\"2026-05-05T"), "{shown}");
}

// Conformance: functions run, on payloads and on what networks report
#[test]
fn runs_what_programs_write_around_a_message() {
    let dir = dir_with(&[]);
    let decoder = "function Decoder(bytes, port) { return { n: bytes.length, port: port } }";
    fs::write(dir.path().join("count.js"), decoder).unwrap();
    for (message, expected) in [
        (r#"{"deviceInfo": {}, "fCnt": 4, "fPort": 3, "rxInfo": []}"#, r#"{"n":0,"port":3}"#),
        (r#"v3/a@t/devices/d/up {"uplink_message": {"f_port": 4}}"#, r#"{"n":0,"port":4}"#),
        (r#"{"result": {"uplink_message": {"f_port": 4, "frm_payload": "Cg=="}}}"#, r#"{"n":1,"port":4}"#),
        (r#"{"topic": "a", "payload": {"fPort": 5, "data": "Cgo="}, "_msgid": "1"}"#, r#"{"n":2,"port":5}"#),
        (r#"{"cmd": "rx", "EUI": "0102030405060708", "port": 2, "data": "aa01"}"#, r#"{"n":2,"port":2}"#),
    ] {
        let shown = printed(&call(dir.path(), &["count.js", "--message", "-"], message));
        assert!(shown.starts_with(&format!("{expected}\n")), "{message}: {shown}");
    }
    for message in [r#"{"data": "aa01"}"#, r#"{"fPort": 2, "data": "aa01bb02"}"#] {
        let output = call(dir.path(), &["count.js", "--message", "-"], message);
        assert!(
            complaint(&output).contains("standard input is not an uplink: its `data` may be Base64 or hexadecimal")
        );
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn fields_beside_data_are_warned_of() {
    let dir = dir_with(&[]);
    let output = call(dir.path(), &["-", "--hex", "0a"], "function decodeUplink() { return { level: 1 } }");
    let shown = printed(&output);
    assert!(shown.starts_with("warning: returned an object without `data`") && shown.contains("\nnull\n"), "{shown}");
}

// Conformance: functions run, on payloads and on what networks report
#[test]
fn prints_one_json_object_for_programs() {
    let dir = dir_with(&[]);
    fs::write(dir.path().join("encoder.js"), "function Encoder(fields) { return [1, 255] }").unwrap();
    let json = |arguments: &[&str]| {
        let output = call(dir.path(), &[arguments, &["--json"]].concat(), "");
        (serde_json::from_slice::<Value>(&output.stdout).unwrap(), output.status.code())
    };
    let (shown, code) = json(&["level.js", "--base64", "Cg=="]);
    assert_eq!((&shown["fields"], &shown["valid"], code), (&json!({ "level": 10 }), &json!(true), Some(0)));
    assert!(shown["fuel"].as_u64().unwrap() > 0 && shown["microseconds"].as_f64().unwrap() > 0.0, "{shown}");
    let (shown, code) = json(&["encoder.js", "--fields", "{}"]);
    assert_eq!((&shown["bytes"], code), (&json!("01ff"), Some(0)));
    let (shown, code) = json(&["level.js", "--hex", "0a", "--port", "2"]);
    assert_eq!((&shown["failure"]["line"], &shown["failure"]["kind"], code), (&json!(4), &json!("thrown"), Some(1)));
    assert_eq!(shown["logs"], json!(["decoder logged: \"wrong port\" 2"]));
}

// Conformance: functions bench, with a baseline
#[test]
fn bench_measures_time_fuel_and_memory() {
    let dir = dir_with(&[]);
    let shown = printed(&bench(dir.path(), &["level.js", "--hex", "0a", "--count", "20"]));
    for name in ["loading: ", "bytes of memory", "time", "p50", "p99", "per second", "1  uplink, port 1, 0a"] {
        assert!(shown.contains(name), "{name} in\n{shown}");
    }
}

#[test]
fn what_is_no_function_and_no_uplink_ends_with_an_error_of_usage() {
    let dir = dir_with(&[]);
    fs::write(dir.path().join("blank.js"), " \n").unwrap();
    fs::write(dir.path().join("cut.json"), "{\"data\": \"AQ==\"").unwrap();
    for (arguments, told) in [
        ("run blank.js --hex 01", "no decoder in blank.js: the file is empty"),
        ("bench blank.js --hex 01", "no decoder in blank.js: the file is empty"),
        ("profile blank.js --hex 01", "no decoder in blank.js: the file is empty"),
        ("test blank.js", "blank.js: the script is empty"),
        ("fuzz blank.js", "blank.js: the script is empty"),
        ("lint blank.js", "blank.js: the script is empty"),
        ("port --to ttn-v2 blank.js", "blank.js: the script is empty"),
        ("run level.js --message cut.json", "cut.json is not an uplink: not JSON in line 1: it ends too early"),
    ] {
        let words = ["functions"].into_iter().chain(arguments.split(' '));
        let output = run(airlock(dir.path()).args(words), "");
        assert!(complaint(&output).contains(told), "{arguments}: {output:?}");
        assert_eq!(output.status.code(), Some(2), "{arguments}");
    }
}

#[test]
fn bench_measures_how_long_scripts_without_examples_take_to_load() {
    let dir = dir_with(&[]);
    fs::write(dir.path().join("other.js"), "function Decoder(bytes) { return {} }").unwrap();
    let output = bench(dir.path(), &["."]);
    let (shown, told) = (printed(&output), String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(shown.contains("level\n  loading: ") && shown.contains("other\n  loading: "), "{shown}");
    assert!(told.contains("2 scripts without examples"), "{told}");
}

// Conformance: functions bench, with a baseline
#[test]
fn bench_fails_when_fuel_rises() {
    let dir = dir_with(&[]);
    fs::write(dir.path().join("level.test.yaml"), "examples:\n  - { port: 1, bytes: 0a }\n").unwrap();
    printed(&bench(dir.path(), &["level.js", "--count", "5", "--save-baseline", "main"]));
    assert!(dir.path().join("main.bench.json").is_file());
    let compare = ["level.js", "--count", "5", "--baseline", "main", "--fail-above", "1%"];
    assert!(printed(&bench(dir.path(), &compare)).contains("same fuel"));

    let script = fs::read_to_string(dir.path().join("level.js")).unwrap();
    let wasteful = script.replacen('{', "{ for (var i = 0; i < 99; i++) {}", 1);
    fs::write(dir.path().join("level.js"), wasteful).unwrap();
    let output = bench(dir.path(), &compare);
    let error = complaint(&output);
    assert!(error.contains("fuel has risen by more than 1% since the baseline"), "{error}");
    assert_eq!(output.status.code(), Some(1));
    let output = bench(dir.path(), &["level.js", "--baseline", "other"]);
    let error = complaint(&output);
    assert!(error.contains("cannot read other.bench.json: No such file") && error.contains("--save-baseline writes"));
    assert_eq!(output.status.code(), Some(2));

    // What another sandbox charged says nothing about this one.
    let saved = fs::read_to_string(dir.path().join("main.bench.json")).unwrap();
    let guest = saved.find("\"guest\": \"").unwrap() + 10;
    let other = format!("{}{}{}", &saved[..guest], "0".repeat(64), &saved[guest + 64..]);
    fs::write(dir.path().join("old.bench.json"), other).unwrap();
    let output = bench(dir.path(), &["level.js", "--count", "5", "--baseline", "old", "--fail-above", "1000%"]);
    assert!(complaint(&output).contains("fuel was not compared: the baseline is of another sandbox"), "{output:?}");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("per second") && !shown.contains("same fuel"), "{shown}");
    assert_eq!(output.status.code(), Some(2));
    // Nor does one of other messages.
    let other = ["level.js", "--hex", "0b", "--count", "5", "--baseline", "main"];
    for (fails, code) in [(&["--fail-above", "1%"][..], 2), (&[], 0)] {
        let output = bench(dir.path(), &[&other[..], fails].concat());
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("the baseline has none of these messages; save a new")
        );
        assert!(String::from_utf8_lossy(&output.stdout).contains("per second"), "{output:?}");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }

    // A baseline that would let the rise pass next time is not saved.
    let kept = fs::read(dir.path().join("main.bench.json")).unwrap();
    let output = bench(dir.path(), &[&compare[..], &["--save-baseline", "main"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(fs::read(dir.path().join("main.bench.json")).unwrap(), kept);
    for choice in [["--filter", "level"], ["--example", "1"]] {
        let output = bench(dir.path(), &[&["level.js", "--save-baseline", "main"][..], &choice].concat());
        assert!(complaint(&output).contains("saves only what was measured: leave out --filter"), "{output:?}");
        assert_eq!(output.status.code(), Some(2));
    }
    assert_eq!(fs::read(dir.path().join("main.bench.json")).unwrap(), kept);
}

#[test]
fn what_bench_cannot_measure_is_told_without_control_characters() {
    let dir = dir_with(&[]);
    fs::write(dir.path().join("level.test.yaml"), "examples:\n  - { port: 1, bytes: 0a }\n").unwrap();
    let output = bench(dir.path(), &["level.js", "--example", "99"]);
    assert!(complaint(&output).contains("no example is number 99"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
    let output = run(airlock(dir.path()).args(["functions", "fuzz", "level.js", "--ports", "1,,2"]), "");
    assert!(output.status.code() == Some(2) && complaint(&output).contains("a port is a number"), "{output:?}");
    for command in ["bench", "fuzz"] {
        let output = run(airlock(dir.path()).args(["functions", command, "a\u{1b}[2J.js", "b\u{1b}[2J.js"]), "");
        let told = complaint(&output);
        assert!(told.contains("cannot read a\u{fffd}[2J.js") && !told.contains('\u{1b}'), "{told:?}");
        assert!(told.contains("2 files or lines could not be read or written"), "{told}");
        assert_eq!(output.status.code(), Some(2));
    }
}

fn bench(dir: &Path, arguments: &[&str]) -> Output {
    run(airlock(dir).current_dir(dir).args(["functions", "bench"]).args(arguments), "")
}

fn call(dir: &Path, arguments: &[&str], input: &str) -> Output {
    run(airlock(dir).args(["functions", "run"]).args(arguments), input)
}
