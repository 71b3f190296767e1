//! `airlock functions`: our own codecs, failing examples, and invalid input.

mod action;
mod coverage;
mod fuzz;
mod lint;
mod new;
mod pages;
mod port;
mod profile;
mod run;
mod stream;
mod watch;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use api::handler::{Application, DryUplinkMessage};
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::Code;

use crate::harness::{Network, airlock, complaint, printed, run};

/// Examples with wrong expectations, and what the report says about each.
const WRONG: &[(&str, &[&str])] = &[
    (r#"{"port": 1, "bytes_hex": "0a", "expected": {"data": {"level": 11}}}"#, &["data.level: expected 11, got 10"]),
    (
        r#"{"port": 1, "bytes_hex": "0a", "expected": {"data": {"level": 10, "unit": "m"}}}"#,
        &["data.unit: expected \"m\", got nothing"],
    ),
    (r#"{"port": 1, "bytes_hex": "0a", "expected": {}}"#, &["data: expected nothing, got {\"level\":10}"]),
    (r#"{"port": 1, "bytes_hex": "0a", "expected": null}"#, &["the result: expected null"]),
    (r#"{"port": 1, "bytes_hex": "0a", "outcome": "throws"}"#, &["expected an exception", "got {\"data\""]),
    (r#"{"port": 1, "bytes_hex": "0a", "outcome": "undefined"}"#, &["expected undefined"]),
    (r#"{"port": 1, "bytes_hex": "0a", "outcome": "timeout"}"#, &["expected a limit that ends it"]),
    (
        r#"{"port": 2, "bytes_hex": "0a", "expected": {}}"#,
        &["expected {}", "ReferenceError", "line 4, column", "4 |     return nowhere", "|            ^", "wrong port"],
    ),
    (r#"{"kind": "downlink-encode", "input_obj": {"data": {}}, "expected": {}}"#, &["expected {}", "encodeDownlink"]),
];

/// Invalid codecs, and their errors.
const BAD: &[(&str, &str)] = &[
    ("{", "line 2: not a JSON object in one line: it ends too early"),
    ("[]", "line 2: not valid: found a list, expected an object"),
    ("{}", "line 2: `script` or `script_file` is missing"),
    (r#"{"script": "", "script_file": "x.js"}"#, "line 2: it has both"),
    (r#"{"script_file": "missing.js"}"#, "line 2: cannot read missing.js: No such file"),
    (r#"{"script_file": "."}"#, "line 2: cannot read .: it is not a regular file"),
    (r#"{"script_file": "../../etc/passwd"}"#, "line 2: cannot read ../../etc/passwd: it is outside the directory"),
    (r#"{"script_file": "/dev/zero"}"#, "line 2: cannot read /dev/zero: it is outside the directory"),
    (r#"{"script": " ", "examples": []}"#, "line 2: the script is empty"),
    (
        r#"{"script": "", "examples": [{"bytes_hex": "", "outcome": 5}]}"#,
        "line 2: not valid: found the number `5`, expected a string",
    ),
    (
        r#"{"script": "", "examples": [{"bytes_hex": "", "env": [{}]}]}"#,
        "line 2: not valid: found an object, expected a string",
    ),
    (r#"{"script": "", "script": ""}"#, "line 2: not valid: `script` is there twice"),
    (r#"{"scirpt": ""}"#, "line 2: unknown member `scirpt`: did you mean `script`?"),
    (r#"{"script": "", "exampels": [{}]}"#, "line 2: unknown member `exampels`: did you mean `examples`?"),
    (r#"{"script": "", "examples": [{"bytes_hex": "", "expect": 1}]}"#, "line 2: example 1: unknown member `expect`"),
    (r#"{"script": 1}"#, "line 2: not valid: found the number `1`, expected a string"),
    (r#"{"script": "", "style": "v3"}"#, "line 2: not valid: `v3` is none of `"),
    (r#"{"script": "", "examples": [{"bytes_hex": ""}, {}]}"#, "line 2: example 2: `bytes_hex` is missing"),
    (r#"{"script": "", "examples": [{"bytes_hex": "0"}]}"#, "line 2: example 1: `bytes_hex` not valid"),
    (r#"{"script": "", "examples": [{"kind": "convert", "bytes_hex": ""}]}"#, "example 1: `input_obj` is missing"),
    (
        r#"{"script": "", "examples": [{"bytes_hex": "", "match": "loose"}]}"#,
        "`loose` is none of `key-order`, `float-1e-9`, `modulo-null-or-empty`",
    ),
    (
        r#"{"script": "", "examples": [{"bytes_hex": "", "env": ["later"]}]}"#,
        "`later` is none of `tz`, `now`, `random`",
    ),
    (r#"{"script": "", "examples": [{"bytes_hex": "", "quickjs": "same"}]}"#, "`same` is not `differs`"),
    (
        r#"{"script": "", "examples": [{"port": 256, "bytes_hex": ""}]}"#,
        "line 2: not valid: found the number `256`, expected a number from 0 to 255",
    ),
    (r#"{"script": "", "style": "v3\n\u009bok"}"#, "`v3\u{fffd}\u{fffd}ok` is none of"),
];

/// Contradictory members of an example, and their errors.
const CONTRADICTIONS: &[(&str, &str)] = &[
    (r#""outcome": "value""#, "`outcome` is `value`, but `expected` is missing"),
    (r#""outcome": "throws", "expected": {}"#, "it has both `expected` and an `outcome` without a value"),
    (r#""outcome": "undefined", "expected": 0"#, "it has both `expected` and an `outcome` without a value"),
    (r#""outcome": "timeout", "expected": false"#, "it has both `expected` and an `outcome` without a value"),
    (r#""oracle_ok": false, "oracle_outcome": "value""#, "`oracle_outcome` is `value`, but `oracle` is missing"),
    (r#""oracle_ok": false, "oracle_outcome": "throws", "oracle": 1"#, "both `oracle` and an `oracle_outcome`"),
    (r#""expected": 1, "oracle": 2"#, "`oracle_ok` is missing"),
    (r#""expected": 1, "oracle_outcome": "throws""#, "`oracle_ok` is missing"),
    (r#""input_obj": {}"#, "it has both `bytes_hex` and `input_obj`"),
    (r#""input_obj": null"#, "it has both `bytes_hex` and `input_obj`"),
    (r#""kind": "convert", "input_obj": {}"#, "it has both `bytes_hex` and `input_obj`"),
    (r#""kind": null"#, "null has no meaning here, omit the member"),
    (r#""outcome": null"#, "null has no meaning here, omit the member"),
    (r#""oracle_ok": null"#, "null has no meaning here, omit the member"),
    (r#""match": null"#, "null has no meaning here, omit the member"),
    (r#""env": null"#, "null has no meaning here, omit the member"),
    (r#""quickjs": null"#, "null has no meaning here, omit the member"),
];

/// Compatible members of an example, even if one of them is ignored.
const AGREEMENTS: &[&str] = &[
    r#""outcome": "value", "expected": {"data": {"level": 10}}"#,
    r#""expected": {"data": {"level": 10}}, "oracle_ok": true, "oracle": 1, "oracle_outcome": "value""#,
    r#""expected": 1, "oracle_ok": false, "oracle": {"data": {"level": 10}}"#,
    r#""port": 2, "outcome": "throws", "expected": null"#,
    r#""port": 2, "expected": 1, "oracle_ok": false, "oracle_outcome": "throws", "oracle": null"#,
];

#[test]
fn our_codecs_pass_their_examples() {
    let dir = tempfile::tempdir().unwrap();
    let file = fixtures().join("codecs.jsonl");
    let shown = check(dir.path(), &[&file], &["--quiet"], "");
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stdout));
    let output = check(dir.path(), &[&file], &["--json"], "");
    let lines: Vec<Value> = printed(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (totals, codecs) = lines.split_last().unwrap();
    assert!(codecs.len() >= 40 && totals["codecs"] == codecs.len(), "{totals}");
    assert_eq!((&totals["failed"], &totals["shown"], &totals["excluded"]), (&json!(0), &json!(0), &json!({})));
    assert!(totals["passed"].as_u64().unwrap() > 100, "{totals}");
    for codec in codecs {
        let passed = |example: &Value| example["outcome"] == "passed" && example["fuel"].as_u64() > Some(0);
        assert!(codec["examples"].as_array().unwrap().iter().all(passed), "{codec}");
        assert!(!codec["examples"].as_array().unwrap().is_empty(), "{codec}");
    }
}

#[test]
fn every_codec_has_examples() {
    let listed = fs::read_to_string(fixtures().join("codecs.jsonl")).unwrap();
    let scripts = fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for script in scripts.filter(|name| name.ends_with(".js")) {
        assert!(listed.contains(&format!("\"script_file\":\"{script}\"")), "{script}");
    }
}

// Conformance: functions test: five layouts and one of our own, whole repositories
#[test]
fn names_where_a_result_differs() {
    for (example, told) in WRONG {
        let dir = dir_with(&[example]);
        let output = check(dir.path(), &[Path::new("codecs.jsonl")], &[], "");
        assert_eq!(output.status.code(), Some(1), "{example}");
        let shown = String::from_utf8(output.stdout).unwrap();
        for text in told.iter().chain(&["FAIL  level", "codecs: 1, with failures: 1", "passed: 0, failed: 1"]) {
            assert!(shown.contains(text), "{example}: {text} in\n{shown}");
        }
    }
}

#[test]
fn a_codec_that_cannot_be_loaded_fails() {
    let dir = tempfile::tempdir().unwrap();
    let line = json!({"id": "broken\u{1b}[2J", "script": "function Decoder() {\n  return {;\n}", "examples": []});
    let output = check(dir.path(), &[Path::new("-")], &["--quiet"], &line.to_string());
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for text in ["FAIL  broken\u{fffd}[2J", "cannot be loaded (line 2, column", "2 |   return {;", "^"] {
        assert!(shown.contains(text), "{text} in\n{shown}");
    }
}

#[test]
fn shows_the_result_of_an_example_without_an_expectation() {
    let dir = dir_with(&[r#"{"port": 1, "bytes_hex": "0a"}"#, r#"{"port": 3, "bytes_hex": "", "env": ["now"]}"#]);
    let shown = printed(&check(dir.path(), &[Path::new("codecs.jsonl")], &[], ""));
    assert!(shown.contains(r#"returned {"data":{"level":10}}"#), "{shown}");
    assert!(shown.contains("passed: 0, failed: 0, shown: 1, excluded: 1 (now 1)"), "{shown}");
}

#[test]
fn reports_invalid_lines_and_runs_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let good = r#"{"script": "function Decoder() { return {} }", "examples": [{"bytes_hex": ""}]}"#;
    for (bad, told) in BAD {
        let output = check(dir.path(), &[Path::new("-")], &[], &format!("{good}\n{bad}\n"));
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.code() == Some(2) && shown.contains("codecs: 1, with failures: 0"), "{bad}: {shown}");
        let error = complaint(&output);
        assert!(error.contains(told), "{bad}: {told} in {error}");
    }
    for (arguments, told) in [
        (&["nowhere.jsonl"][..], "cannot read nowhere.jsonl: No such file"),
        (&["."], "these files contain no codecs"),
        (&["-"], "these files contain no codecs"),
        (&["-", "-"], "`-` appears more than once: standard input can be read only once"),
        (&[], "<PATH>"),
    ] {
        let output = run(airlock(dir.path()).args(["functions", "check"]).args(arguments), "\n\n");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(complaint(&output).contains(told), "{told} in {}", complaint(&output));
    }
}

#[test]
fn refuses_contradictory_members() {
    let port = |members: &str| if members.contains("port") { "" } else { r#""port": 1, "# };
    let example = |members: &str| format!(r#"{{"bytes_hex": "0a", {}{members}}}"#, port(members));
    for (members, told) in CONTRADICTIONS {
        let output = check(dir_with(&[&example(members)]).path(), &[Path::new("codecs.jsonl")], &[], "");
        assert_eq!(output.status.code(), Some(2), "{members}");
        assert!(complaint(&output).contains(told), "{members}: {}", complaint(&output));
    }
    let examples: Vec<String> = AGREEMENTS.iter().map(|members| example(members)).collect();
    let examples: Vec<&str> = examples.iter().map(String::as_str).collect();
    let shown = printed(&check(dir_with(&examples).path(), &[Path::new("codecs.jsonl")], &[], ""));
    assert!(shown.starts_with(&format!("ok    level  {} passed", AGREEMENTS.len())), "{shown}");
}

#[test]
fn limits_the_size_of_a_line_and_the_number_of_examples() {
    let dir = tempfile::tempdir().unwrap();
    fs::File::create(dir.path().join("huge.jsonl")).unwrap().set_len(3 << 20).unwrap();
    let examples = |count: usize| {
        let examples = vec![json!({"bytes_hex": "", "env": ["now"]}); count];
        json!({"script": "function Decoder() {}", "examples": examples}).to_string()
    };
    for (file, input, told) in [
        ("huge.jsonl", "", "huge.jsonl, line 1: it has more than 2097152 bytes"),
        ("-", &examples(1025), "line 1: it has more than 1024 examples"),
    ] {
        let output = check(dir.path(), &[Path::new(file)], &[], input);
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(complaint(&output).contains(told), "{}", complaint(&output));
    }
    let shown = printed(&check(dir.path(), &[Path::new("-")], &[], &examples(1024)));
    assert!(shown.contains("excluded: 1024 (now 1024)"), "{shown}");
}

#[test]
fn output_of_codecs_cannot_forge_lines_or_control_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let script = "function Decoder() { throw 'a\\nok    other/codec  3 passed\\n\u{9b}2J\u{202e}' }";
    let codec =
        json!({"id": "x\u{202e}", "script": script, "examples": [{"bytes_hex": "", "expected": {}}]}).to_string();
    let shown = String::from_utf8(check(dir.path(), &[Path::new("-")], &[], &codec).stdout).unwrap();
    assert!(shown.contains("a\u{fffd}ok    other/codec  3 passed\u{fffd}\u{fffd}2J\u{fffd}\n"), "{shown}");
    let json = String::from_utf8(check(dir.path(), &[Path::new("-")], &["--json"], &codec).stdout).unwrap();
    assert!(json.contains(r#""id":"x\u202e""#) && !json.contains(['\u{9b}', '\u{202e}']), "{json}");
    let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].clone();
    assert_eq!(json.lines().map(id).collect::<Vec<_>>(), [json!("x\u{202e}"), Value::Null]);

    fs::write(dir.path().join("x.js"), script).unwrap();
    let error = complaint(&run(airlock(dir.path()).args(["functions", "run", "x.js", "--hex", ""]), ""));
    assert!(
        error.lines().all(|line| !line.starts_with("ok")) && error.contains("\u{fffd}ok    other/codec"),
        "{error}"
    );
}

#[test]
fn tells_lone_surrogates_apart() {
    let script = r"function decodeUplink() { return {s: '\ud800', '\udc00': 1, '\udc01': 2}; }
        function encodeDownlink(input) { return {unit: input.data.s.charCodeAt(0)}; }";
    let check_against = |expected: &str| {
        let script = json!(script);
        let encode =
            r#"{"kind": "downlink-encode", "input_obj": {"data": {"s": "\udfff"}}, "expected": {"unit": 57343}}"#;
        let line = format!(
            r#"{{"script": {script}, "examples": [{{"port": 1, "bytes_hex": "", "expected": {expected}}}, {encode}]}}"#
        );
        check(tempfile::tempdir().unwrap().path(), &[Path::new("-")], &[], &line)
    };
    printed(&check_against(r#"{"s": "\uD800", "\udc00": 1, "\udc01": 2}"#));
    for (expected, difference) in [
        (r#"{"s": "\udbff", "\udc00": 1, "\udc01": 2}"#, r#"s: expected "\udbff", got "\ud800""#),
        (r#"{"s": "\ud800", "\udc00": 1, "\udfff": 2}"#, r"\udfff: expected 2, got nothing"),
        (r#"{"s": "\ufffd", "\udc00": 1, "\udc01": 2}"#, r#"got "\ud800""#),
    ] {
        let output = check_against(expected);
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success() && shown.contains(difference), "{shown}");
    }
}

#[test]
fn checks_only_the_requested_codecs() {
    let dir = dir_with(&[]);
    let file = [Path::new("codecs.jsonl")];
    let shown = printed(&check(dir.path(), &file, &["--id", "eve", "--jobs", "1"], ""));
    assert!(shown.starts_with("ok    level  no examples\n"), "{shown}");
    assert!(complaint(&check(dir.path(), &file, &["--id", "other"], "")).contains("`other`"));
}

#[test]
fn ignores_byte_order_marks_blank_lines_and_unknown_members() {
    let dir = tempfile::tempdir().unwrap();
    let record = r#"{"id": "level", "vendor": "x", "script": "function Decoder(bytes) { return { level: bytes[1] } }",
        "examples": [{"bytes_hex": "0A 0b", "expected": {"level": 11}, "seen\u001b": 2025}]}"#;
    let file = format!("\u{feff}{}\r\n\r\n", record.replace('\n', ""));
    fs::write(dir.path().join("codecs.jsonl"), file).unwrap();
    let output = check(dir.path(), &[Path::new("codecs.jsonl")], &[], "");
    assert!(printed(&output).starts_with("ok    level  1 passed"), "{}", printed(&output));
    let note = String::from_utf8(output.stderr).unwrap();
    assert_eq!(note, "note: ignored unknown members: seen\u{fffd}, vendor\n");
    let output = check(dir.path(), &[Path::new("codecs.jsonl")], &["--quiet"], "");
    assert_eq!((output.status.success(), output.stderr.len()), (true, 0));
}

#[test]
fn a_closed_pipe_ends_it_silently() {
    let dir = tempfile::tempdir().unwrap();
    // More than the buffer of a pipe.
    let lines =
        format!("{}\n", json!({"id": "x".repeat(2048), "script": "function Decoder() { return {} }"})).repeat(100);
    fs::write(dir.path().join("codecs.jsonl"), lines).unwrap();
    let mut command = airlock(dir.path());
    command.args(["functions", "check", "codecs.jsonl"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("ok    xxx") && line.ends_with("x  no examples\n"), "{line}");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(141), ""));
}

#[test]
fn the_documentation_lists_every_limit() {
    let page = include_str!("../../../docs/functions.md");
    let limits = serde_json::to_value(runtime::Limits::default()).unwrap();
    for (name, value) in limits.as_object().unwrap() {
        assert!(page.contains(&format!("| `{name}` | {value} |")), "{name} is {value}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_and_dry_runs_return_the_source_line_and_the_logs() {
    let network = Network::start().await;
    let owner = network.owner("author").await;
    let error = owner.set_functions(["function Decoder() {\n  return {;\n}", "", ""]).await.unwrap_err().to_string();
    assert!(error.contains("the decoder cannot be loaded (line 2, column"), "{error}");
    assert!(error.contains("\n2 |   return {;\n  |"), "{error}");

    let decoder = "function Decoder(bytes) {\n  console.log('length', bytes.length);\n  return bytes.a.b;\n}";
    let run = DryUplinkMessage {
        payload: vec![1, 2],
        app: Some(Application { app_id: owner.app_id.to_string(), decoder: decoder.to_owned(), ..Default::default() }),
        port: 1,
        ..Default::default()
    };
    let status = network.manager().await.dry_uplink(owner.sign(run)).await.unwrap_err();
    let (code, text) = (status.code(), status.message());
    assert!(code == Code::InvalidArgument && text.contains("(line 3, column"), "{status}");
    assert!(text.contains("\n3 |   return bytes.a.b;\n  |"), "{status}");
    assert!(text.ends_with("^\nthe decoder logged: \"length\" 2"), "{status}");
    network.stack.stop().await;
}

#[test]
fn a_report_for_standard_output_takes_the_place_of_what_is_printed() {
    let dir = dir_with(&[r#"{"port": 1, "bytes_hex": "0a", "expected": {"data": {"level": 10}}}"#]);
    let file = dir.path().join("codecs.jsonl");
    let out = printed(&check(dir.path(), &[&file], &["--report", "junit=-", "--report", "tap=report.tap"], ""));
    assert!(out.starts_with("<?xml") && out.trim_end().ends_with("</testsuites>"), "{out}");
    assert!(dir.path().join("report.tap").exists() && !dir.path().join("-").exists());
    let twice = check(dir.path(), &[&file], &["--report", "junit=-", "--report", "tap=-"], "");
    assert!(complaint(&twice).contains("- is named for two reports"), "{twice:?}");
    assert_eq!(twice.status.code(), Some(2));
}

fn dir_with(examples: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let script = "function decodeUplink(input) {\n  if (input.fPort === 2) {\n    console.log('wrong port', 2);\n    \
                  return nowhere;\n  }\n  return { data: { level: input.bytes[0] } };\n}\n";
    fs::write(dir.path().join("level.js"), script).unwrap();
    let examples = examples.join(", ");
    let line = format!(r#"{{"id": "level", "script_file": "level.js", "examples": [{examples}]}}"#);
    fs::write(dir.path().join("codecs.jsonl"), line).unwrap();
    dir
}

fn check(dir: &Path, files: &[&Path], options: &[&str], input: &str) -> Output {
    run(airlock(dir).args(["functions", "check"]).args(files).args(options), input)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/codecs")
}
