//! Tests that programs can read the reports for them, whatever names and texts codecs have.

use std::{
    convert::Infallible,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use airlock_workbench::{self as workbench, Detail, Format, Rules, Totals};
use serde_json::{Value, json};

use crate::support::{Dir, engine};

const SCRIPT: &str = "function decodeUplink() { return { n: '\\uffff\\ufffe\\u0000<' } }";

/// Names that mean something to each format, or would begin a line of their own.
const ID: &str = "]]>&<b>\"'%0A|`x`\n::error::forged\nnot ok 9 # TODO\u{1b}[2J";
const DESCRIPTION: &str = "a\\ # SKIP %25,: ]]>\n::warning::forged";
const DIR: &str = "v,w:x %y/<z>";
const HOSTILE: &str = "function decodeUplink(input) {
  if (input.fPort === 1) return { data: { '::error::]]>': '|<b>' } };
  throw new Error('1..1\\n::error::forged ]]>');
}
";

/// The report on all that is in a directory, or on one file of it.
fn report(dir: &Dir, file: &str, format: Format) -> String {
    let engine = engine();
    let found = workbench::find(&[dir.path().join(file)], None, &engine);
    let mut reporter = format.reporter(Detail::Normal);
    let mut text = String::new();
    let Ok(totals) = workbench::run(&engine, &found.codecs, Rules::default(), 1, |report| {
        text += &reporter.codec(report);
        Ok::<(), Infallible>(())
    });
    text + &reporter.end(&totals, &found.problems)
}

/// A codec with hostile names: one example differs, one fails in line 3 of the script, and one passes. Below it a line
/// that is not valid.
fn hostile() -> (Dir, PathBuf, PathBuf) {
    let examples = json!([
        {"port": 1, "bytes_hex": "00", "expected": {"data": {"::error::]]>": "<c>"}}, "desc": DESCRIPTION},
        {"port": 2, "bytes_hex": "00", "expected": {}, "desc": DESCRIPTION},
        {"port": 2, "bytes_hex": "00", "outcome": "throws"},
    ]);
    let line = json!({"id": ID, "script_file": "s#1.js", "examples": examples});
    let (script, list) = (format!("{DIR}/s#1.js"), format!("{DIR}/codecs.jsonl"));
    let dir = Dir::new(&[(&script, HOSTILE), (&list, &format!("{line}\n{{\n"))]);
    let [script, list] = [script, list].map(|file| dir.path().join(file));
    (dir, script, list)
}

fn hostile_report(format: Format) -> (String, String, String) {
    let (dir, script, list) = hostile();
    let text = report(&dir, &format!("{DIR}/codecs.jsonl"), format);
    (text, script.display().to_string(), list.display().to_string())
}

/// Returns what a program prints for an input; `None` if it is not installed, which it must be where `REQUIRE_SERVICES`
/// says that no test is skipped.
fn read_by(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let is_required = std::env::var_os("REQUIRE_SERVICES").is_some_and(|value| value == "1");
    let child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        assert!(!is_required, "`{program}` is missing");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} cannot read {input}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tap_begins_with_its_version_even_if_nothing_was_found() {
    let mut reporter = Format::Tap.reporter(Detail::Normal);
    assert_eq!(reporter.end(&Totals::default(), &[]), "TAP version 14\n1..0\n");
}

// Conformance: functions test: reports for programs
#[test]
fn reports_say_what_could_not_be_read_and_stay_well_formed() {
    let dir = Dir::new(&[("a.js", SCRIPT), ("a.test.yaml", "examples: [{bytes: 00, output: 1}, {bytes: zz}]")]);
    let json = report(&dir, "", Format::Json);
    let last: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    let file = dir.path().join("a.test.yaml").display().to_string();
    assert_eq!(
        (&last["failed"], &last["problems"][0]["file"], &last["problems"][0]["line"]),
        (&1.into(), &file.into(), &1.into())
    );
    assert!(last["problems"][0]["reason"].as_str().unwrap().starts_with("example 2: `bytes` not valid"), "{last}");
    let junit = report(&dir, "", Format::Junit);
    let is_xml = |character: char| matches!(character, '\n' | ' '..='\u{fffd}' | '\u{10000}'..);
    assert!(junit.contains("\u{fffd}") && junit.chars().all(is_xml), "{junit:?}");
}

#[test]
fn a_file_that_cannot_be_read_is_told_with_the_cause() {
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Human) {
        let text = report(&Dir::new(&[]), "nowhere.jsonl", format);
        assert!(text.contains("No such file"), "{}: {text}", format.name());
    }
}

/// Every suite with its counts, and every case with its place and its faults.
const READ_JUNIT: &str = "
import json, sys, xml.etree.ElementTree as tree
def case(case):
    wrong = [(one.tag, one.get('message'), one.text) for one in case]
    return [case.get('name'), case.get('classname'), case.get('file'), case.get('line'), wrong]
root = tree.fromstring(sys.stdin.buffer.read())
assert root.tag == 'testsuites'
counts = lambda suite: [int(suite.get(name)) for name in ('tests', 'failures', 'errors', 'skipped')]
print(json.dumps([[suite.get('name'), counts(suite), [case(one) for one in suite.iter('testcase')]] for suite in root]))
";

// Conformance: functions test: reports for programs
#[test]
fn a_parser_of_xml_reads_junit() {
    let (text, script, list) = hostile_report(Format::Junit);
    let Some(read) = read_by("python3", &["-c", READ_JUNIT], &text) else { return };
    let suites: Value = serde_json::from_str(&read).unwrap();
    let [codec, input] = &suites.as_array().unwrap()[..] else { panic!("{suites:#}") };
    let name = "]]>&<b>\"'%0A|`x`\u{fffd}::error::forged\u{fffd}not ok 9 # TODO\u{fffd}[2J";
    assert_eq!((&codec[0], &codec[1]), (&json!(name), &json!([3, 2, 0, 0])));
    let cases = codec[2].as_array().unwrap();
    let title = "example 1 — a\\ # SKIP %25,: ]]>\u{fffd}::warning::forged";
    assert_eq!((&cases[0][0], &cases[0][1]), (&json!(title), &json!(name)));
    assert_eq!((&cases[0][2], &cases[0][3]), (&json!(list), &json!("1")));
    assert_eq!((&cases[1][2], &cases[1][3]), (&json!(script), &json!("3")));
    let [kind, message, body] = [0, 1, 2].map(|index| cases[0][4][0][index].as_str().unwrap());
    assert!(kind == "failure" && message.contains("expected \"<c>\", got \"|<b>\""), "{message}");
    assert!(body.starts_with("uplink, port 1, 00\n"), "{body}");
    assert!(cases[1][4][0][2].as_str().unwrap().contains("Error: 1..1\u{fffd}::error::forged ]]>\n"), "{}", cases[1]);
    assert_eq!(cases[2][4], json!([]));
    assert_eq!((&input[1], &input[2][0][0]), (&json!([1, 0, 1, 0]), &json!(format!("{list}, line 2"))));
}

// Conformance: functions test: reports for programs
#[test]
fn sarif_has_what_its_schema_requires() {
    let (text, script, list) = hostile_report(Format::Sarif);
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["version"], "2.1.0");
    assert!(report["$schema"].as_str().unwrap().ends_with("sarif-2.1.0.json"));
    let run = &report["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "airlock");
    let rules: Vec<&Value> =
        run["tool"]["driver"]["rules"].as_array().unwrap().iter().map(|rule| &rule["id"]).collect();
    let results = run["results"].as_array().unwrap();
    let place = |result: &Value| {
        assert!(rules.contains(&&result["ruleId"]) && result["level"] == "error", "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%".contains(&byte)), "{uri}");
        (decoded(uri), place["region"]["startLine"].as_u64().unwrap())
    };
    let places: Vec<_> = results.iter().map(place).collect();
    assert_eq!(places, [(list.clone(), 1), (script, 3), (list, 2)]);
}

/// Text without escapes of URLs, which those of annotations are too.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escape = std::str::from_utf8(&tail[..tail.len().min(2)]).ok();
        match (first, escape.and_then(|escape| u8::from_str_radix(escape, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).unwrap()
}

// Conformance: functions test: reports for programs
#[test]
fn github_reads_three_annotations_and_no_other_command() {
    let (text, script, list) = hostile_report(Format::Github);
    // GitHub takes a line for a command if it begins with `::` after blanks.
    let commands: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with("::")).collect();
    let places: Vec<_> = commands
        .iter()
        .map(|command| {
            let (properties, message) = command.strip_prefix("::error ").unwrap().split_once("::").unwrap();
            assert!(!message.is_empty());
            let properties: Vec<_> = properties.split(',').map(|one| one.split_once('=').unwrap()).collect();
            let [("file", file), ("line", line), ("title", _)] = properties[..] else { panic!("{command}") };
            (decoded(file), line.parse().unwrap())
        })
        .collect();
    assert_eq!(places, [(list.clone(), 1), (script, 3), (list, 2)]);
    assert!(text.ends_with("examples: 3, passed: 1, failed: 2\n") || text.contains("\nexamples: 3, "), "{text}");
}

// Conformance: functions test: reports for programs
#[test]
fn tap_counts_its_points_and_has_the_plan_at_its_end() {
    let (text, ..) = hostile_report(Format::Tap);
    assert!(text.starts_with("TAP version 14\n"), "{text}");
    let points: Vec<&str> =
        text.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).collect();
    let starts = ["not ok 1 - ", "not ok 2 - ", "ok 3 - ", "not ok 4 - "];
    assert!(points.len() == 4 && points.iter().zip(starts).all(|(point, start)| point.starts_with(start)), "{text}");
    assert!(points.iter().all(|point| !point.contains(" # ")), "a directive: {points:?}");
    assert_eq!(text.lines().filter(|line| line.starts_with("1..")).collect::<Vec<_>>(), ["1..4"]);
    // Perl's parser is not on every machine.
    let script = "use TAP::Parser; my $read = TAP::Parser->new({ tap => join('', <STDIN>) }); $read->run; \
                  print join ' ', $read->tests_run, scalar($read->failed), scalar($read->parse_errors), scalar($read->skipped);";
    let has_parser = Command::new("perl").args(["-MTAP::Parser", "-e", "1"]).stderr(Stdio::null()).status();
    if has_parser.is_ok_and(|status| status.success()) {
        let read = read_by("perl", &["-e", script], &text.replace("TAP version 14", "TAP version 13")).unwrap();
        assert_eq!(read, "4 3 0 0", "{text}");
    }
}

// Conformance: functions test: reports for programs
#[test]
fn json_has_every_text_as_it_is_and_no_control_characters() {
    let (text, script, list) = hostile_report(Format::Json);
    assert!(text.chars().all(|character| character == '\n' || !character.is_control()), "{text:?}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [codec, end] = &lines[..] else { panic!("{text}") };
    assert_eq!((&codec["id"], &codec["file"]), (&json!(ID), &json!(script)));
    assert_eq!(codec["examples"][0]["description"], DESCRIPTION);
    assert_eq!(codec["examples"][0]["differences"][0]["path"], "data.::error::]]>");
    assert_eq!((&codec["examples"][1]["line"], &end["problems"][0]["file"]), (&json!(3), &json!(list)));
    assert_eq!((&end["failed"], &end["problems"][0]["line"]), (&json!(2), &json!(2)));
}

// Conformance: functions test, bench, profile: reports for people
#[test]
fn people_see_no_line_that_others_have_written() {
    let (text, ..) = hostile_report(Format::Human);
    let starts = ["FAIL  ]]>&<b>", "codecs: 1, ", "examples: 3, ", "per example: "];
    let own: Vec<&str> = text.lines().filter(|line| !line.starts_with("      ")).collect();
    assert!(own.len() == 4 && own.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{text}");
    assert!(text.contains("\n          3 |   throw new Error") || text.contains("3 |   throw new Error"), "{text}");
    let (html, ..) = hostile_report(Format::Html);
    assert!(!html.contains("<b>") && !html.contains("<c>") && html.contains("]]&#62;&#38;&#60;b&#62;"), "{html}");
    let (markdown, ..) = hostile_report(Format::Markdown);
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with("| ")).collect();
    let cells = |row: &&str| row.replace("\\|", "").matches('|').count();
    assert!(rows.len() == 3 && rows.iter().map(cells).all(|count| count == 5), "{markdown}");
    assert!(!markdown.contains("<b>") && markdown.contains("line 3 |\n"), "{markdown}");
}
