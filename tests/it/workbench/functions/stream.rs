//! `airlock functions run --stream`: lines in, and a line for each out.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{airlock, complaint, printed, run, runs_airlock};

const DECODER: &str = "function Decoder(bytes, port) {
  if (bytes.length === 0) throw new Error('empty');
  var sum = 0;
  for (var i = 0; i < bytes.length; i++) sum += bytes[i];
  return { sum: sum, port: port, at: new Date().toISOString(), random: Math.random() };
}";

fn with_decoder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("decoder.js"), DECODER).unwrap();
    dir
}

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = airlock(dir);
    command.current_dir(dir).args(["functions", "run", "decoder.js"]).args(arguments);
    command
}

/// Runs these lines; returns the result of each as JSON.
fn stream(dir: &Path, input: &[u8], arguments: &[&str]) -> Vec<Value> {
    let file = dir.join("input.jsonl");
    fs::write(&file, input).unwrap();
    let output = command(dir, &[&["--stream"], arguments].concat()).stdin(File::open(file).unwrap()).output().unwrap();
    printed(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// Conformance: functions run, on lines of a stream: in order, at once, whatever they are
#[test]
fn every_line_has_its_result_in_order_and_as_one_message_has() {
    let dir = with_decoder();
    let time = "2026-01-01T00:00:00Z";
    let line = |number: usize| format!(r#"{{"id": {number}, "hex": "{number:04x}", "port": 7, "time": "{time}"}}"#);
    let input: Vec<String> = (0..5000).map(line).collect();
    for jobs in ["1", "3"] {
        let results = stream(dir.path(), input.join("\n").as_bytes(), &["--jobs", jobs]);
        assert_eq!(results.len(), 5000);
        for (number, result) in results.iter().enumerate() {
            assert_eq!(
                (&result["id"], &result["fields"]["sum"]),
                (&json!(number), &json!(number / 256 + number % 256))
            );
        }
        let one = ["--hex", "1234", "--port", "7", "--time", time, "--json"];
        let one: Value = serde_json::from_str(&printed(&run(&mut command(dir.path(), &one), ""))).unwrap();
        assert_eq!((&results[0x1234]["fields"], &results[0x1234]["fuel"]), (&one["fields"], &one["fuel"]));
    }
}

/// The command of docs/scale.md, with more than one of its blocks.
// Conformance: functions run, on lines of a stream: in order, at once, whatever they are
#[test]
fn gnu_parallel_decodes_an_export_in_blocks_and_keeps_its_order() {
    let version = Command::new("parallel").arg("--version").stdin(Stdio::null()).output();
    // Another program has the same name.
    let is_installed = version.is_ok_and(|version| version.stdout.starts_with(b"GNU parallel"));
    if !testing::programs_may_run() || !is_installed {
        return testing::skip("GNU parallel is missing", "install it, on Debian by `apt-get install parallel`");
    }
    let guide = include_str!("../../../../docs/scale.md");
    let documented = guide.lines().find(|line| line.starts_with("parallel --")).unwrap();
    let dir = with_decoder();
    let text = "x".repeat(6000);
    let line = |number: usize| format!(r#"{{"id": {number}, "hex": "{number:04x}", "port": 7, "text": "{text}"}}"#);
    let lines: String = (0..2000).map(|number| line(number) + "\n").collect();
    assert!(lines.len() > 10 << 20, "one block");
    fs::write(dir.path().join("uplinks.jsonl"), lines).unwrap();
    let mut command = Command::new("sh");
    runs_airlock(&mut command, dir.path());
    printed(&run(command.args(["-c", documented]), ""));
    let results = fs::read_to_string(dir.path().join("results.jsonl")).unwrap();
    let results: Vec<Value> = results.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 2000);
    for (number, result) in results.iter().enumerate() {
        assert_eq!((&result["id"], &result["fields"]["sum"]), (&json!(number), &json!(number / 256 + number % 256)));
    }
}

// Conformance: functions run, on lines of a stream: in order, at once, whatever they are
#[test]
fn a_line_may_be_what_a_network_reports_and_have_a_seed() {
    let dir = with_decoder();
    let input = br#"{"fCnt": 4, "fPort": 3, "data": "AQI=", "deviceInfo": {}, "id": {"a": 1}}
{"base64": "AQI=", "seed": 5}
{"base64": "AQI=", "seed": 5}
{"base64": "AQI=", "seed": 6}
"#;
    let results = stream(dir.path(), input, &[]);
    let of = |number: usize, name: &str| &results[number]["fields"][name];
    assert_eq!((of(0, "sum"), of(0, "port"), &results[0]["id"]), (&json!(3), &json!(3), &json!({"a": 1})));
    assert!(of(1, "random") == of(2, "random") && of(1, "random") != of(3, "random"), "{results:?}");
    assert_eq!((of(1, "port"), results[1].get("id")), (&json!(1), None));
}

/// So another engine gets from stored records what they had.
// Conformance: functions run, on lines of a stream: in order, at once, whatever they are
#[test]
fn a_record_of_history_runs_as_it_did() {
    let dir = with_decoder();
    fs::write(
        dir.path().join("decoder.js"),
        "function Decode(p, b, variables) { return { variables, random: Math.random() }; }",
    )
    .unwrap();
    let record = |dev_id: &str, seed: Value| {
        let mut record =
            json!({"app_id": "my-app", "dev_id": dev_id, "kind": "up", "port": 2, "counter": 7, "outcome": "failed"});
        record["extra"] = json!({"variables": {"k": dev_id}});
        record["seed"] = seed;
        record.to_string()
    };
    let event = r#"{"app_id": "my-app", "dev_id": "dev-b", "kind": "down/sent", "outcome": "decoded"}"#.to_owned();
    let lines = [
        record("dev-b", Value::Null),
        record("dev-b", Value::Null),
        record("dev-c", Value::Null),
        record("dev-c", "18446744073709551615".into()),
        event,
    ];
    let results = stream(dir.path(), lines.join("\n").as_bytes(), &[]);
    let made: Vec<_> = results.iter().map(|result| result["fields"].clone()).collect();
    assert_eq!((&made[0], &made[0]["variables"]), (&made[1], &json!({"k": "dev-b"})), "{results:?}");
    let random = |number: usize| made[number]["random"].as_f64().unwrap();
    assert!(random(1) != random(2) && random(2) != random(3), "{results:?}");
    assert!(results[4]["error"].as_str().unwrap().contains("no payload"), "{results:?}");
}

// Conformance: functions run, on lines of a stream: in order, at once, whatever they are
#[test]
fn what_is_no_message_has_a_line_too() {
    let dir = with_decoder();
    let long = format!(r#"{{"id": 1, "hex": "{}"}}"#, "00".repeat(1 << 20));
    let lines: [(&[u8], &str); 9] = [
        (b"{", "no JSON object"),
        (b"[]", "no JSON object"),
        (b"", "no JSON object"),
        (b"\xff", "not UTF-8"),
        (br#"{"id": 1}"#, "no `hex` or `base64`"),
        (br#"{"id": 1, "hex": "0"}"#, "odd number"),
        (br#"{"id": 1, "hex": "00", "base64": ""}"#, "both"),
        (br#"{"id": 1, "hex": "00", "port": 256}"#, "256"),
        (long.as_bytes(), "more than 1048576 bytes"),
    ];
    let input = lines.iter().flat_map(|(line, _)| [line, &b"\n{\"hex\": \"01\"}\n"[..]]).collect::<Vec<_>>().concat();
    let results = stream(dir.path(), &input, &[]);
    assert_eq!(results.len(), 2 * lines.len(), "{results:?}");
    for (pair, (line, expected)) in results.chunks(2).zip(lines) {
        let error = pair[0]["error"].as_str().unwrap_or_default();
        assert!(error.contains(expected), "{expected} for {:?} in {pair:?}", line.get(..40));
        assert_eq!(pair[1]["fields"]["sum"], 1, "the next line is read");
    }
    let failed = stream(dir.path(), br#"{"id": 9, "hex": ""}"#, &[]);
    assert_eq!((&failed[0]["id"], &failed[0]["failure"]["line"]), (&json!(9), &json!(2)), "{failed:?}");
}

// Conformance: functions run, on lines of a stream: in order, at once, whatever they are
#[test]
fn a_result_does_not_wait_for_the_next_line() {
    let dir = with_decoder();
    let mut child = command(dir.path(), &["--stream"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut results = BufReader::new(output).lines();
    for number in 1..20 {
        writeln!(input, r#"{{"hex": "{number:02x}"}}"#).unwrap();
        let result: Value = serde_json::from_str(&results.next().unwrap().unwrap()).unwrap();
        assert_eq!(result["fields"]["sum"], number);
    }
    drop(input);
    assert!(results.next().is_none() && child.wait().unwrap().success());
}

// Conformance: functions run, on lines of a stream: in order, at once, whatever they are
#[test]
fn a_stream_ends_when_nobody_reads_it() {
    let dir = with_decoder();
    let mut child = command(dir.path(), &["--stream"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    drop(child.stdout.take());
    // Fails once the other end has gone.
    while input.write_all(b"{\"hex\": \"01\"}\n").is_ok() {}
    drop(input);
    child.wait().unwrap();
}

#[test]
fn functions_cannot_come_with_the_messages() {
    let dir = with_decoder();
    let output = run(airlock(dir.path()).args(["functions", "run", "-", "--stream"]), "");
    assert!(complaint(&output).contains("name a file with the functions"), "{output:?}");
    let output = run(&mut command(dir.path(), &["--stream", "--hex", "00"]), "");
    assert!(complaint(&output).contains("cannot be used with"), "{output:?}");
}
