//! Tests of faults that fuzzing finds in codecs of our own, and of those that it must not find.

use std::{convert::Infallible, fs, path::PathBuf, time::Duration};

use airlock_workbench::{self as workbench, Codec, FaultKind, FuzzPlan, FuzzReport};
use runtime::Dialect;

use crate::support::{Dir, engine, fixture, test};

fn plan() -> FuzzPlan {
    FuzzPlan { seed: 1, count: 1500, length_max: 242, ports: Vec::new(), time_ms: None, dialect: None, time_max: None }
}

fn codecs(paths: &[PathBuf]) -> Vec<Codec> {
    let found = workbench::find(paths, None, &engine());
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    found.codecs
}

fn fuzz_all(codecs: &[Codec], plan: &FuzzPlan) -> Vec<FuzzReport> {
    let mut reports = Vec::new();
    let Ok(()) = workbench::fuzz(&engine(), codecs, plan, 2, |_, report| {
        reports.push(report);
        Ok::<(), Infallible>(())
    });
    assert_eq!(reports.len(), codecs.len());
    reports
}

/// Fuzzes a script alone, or with examples.
fn fuzz(script: &str, examples: &str, plan: &FuzzPlan) -> FuzzReport {
    let files = [("one.js", script), ("one.test.yaml", examples)];
    let files = if examples.is_empty() { &files[..1] } else { &files[..] };
    let dir = Dir::new(files);
    let report = fuzz_all(&codecs(&[dir.path().join("one.js")]), plan).remove(0);
    assert_eq!(report.failure, None, "{script}");
    report
}

/// Kind, payload and line of each finding.
fn found(report: &FuzzReport) -> Vec<(FaultKind, &str, Option<u32>)> {
    report.findings.iter().map(|finding| (finding.kind, finding.bytes.as_str(), finding.line)).collect()
}

/// The body of a decoder of TS013, whose first line is 2.
fn uplink(body: &str) -> String {
    format!("function decodeUplink(input) {{ var b = input.bytes;\n{body}\n}}")
}

#[test]
fn the_codec_of_the_documentation_has_no_fault() {
    for report in fuzz_all(&codecs(&[fixture("networks")]), &plan()) {
        assert!(report.failure.is_none() && report.has_targets && report.findings.is_empty(), "{report:?}");
    }
}

#[test]
fn each_fault_is_found_once_with_the_smallest_payload() {
    for (body, kind, bytes, line) in [
        ("return { data: { x: b[2].toString() } };", FaultKind::Throws, "", Some(2)),
        ("if (b[1] === 7) nowhere();\nreturn { data: {} };", FaultKind::Throws, "0007", Some(2)),
        ("if (b[0] > 9) {\n throw new Error('of ' + b[0]); }\nreturn { data: {} };", FaultKind::Throws, "0a", Some(3)),
        ("while (b[0] === 0x80);\nreturn { data: {} };", FaultKind::Endless, "80", Some(2)),
        (
            "function f() { return b[0] & 2 ? 1 + f() : 0; }\nreturn { data: { f: f() } };",
            FaultKind::Stack,
            "02",
            Some(2),
        ),
        ("return { data: { list: [0, b[0] / 2] } };", FaultKind::Nan, "", None),
        ("return { data: { x: 1 / ((b[0] ^ 1) | 0) } };", FaultKind::Nan, "01", None),
        ("return { data: { x: b[0] + 1, y: [b[0] * 2] } };", FaultKind::Nan, "", None),
        ("if (b.length < 3) return { data: {} };", FaultKind::Result, "000000", None),
        ("return b[0] === 255 ? [] : { data: {} };", FaultKind::Result, "ff", None),
        ("return { data: b.length > 1 ? 'x' : {} };", FaultKind::Result, "0000", None),
        ("return b.length > 1 ? { temperature: 1 } : { data: {} };", FaultKind::Result, "0000", None),
        ("return { data: { x: b.length === 2 ? Math.random() : 0 } };", FaultKind::Random, "0000", None),
    ] {
        let report = fuzz(&uplink(body), "", &plan());
        assert_eq!(found(&report), [(kind, bytes, line)], "{body}\n{}", report.text());
        assert!(report.has_failed() && report.text().contains(kind.name()), "{}", report.text());
    }
}

#[test]
fn a_memory_limit_is_found() {
    let body = "var s = 'x'; while (b[0] === 1) s += s;\nreturn { data: {} };";
    let report = fuzz(&uplink(body), "", &FuzzPlan { count: 400, ..plan() });
    let [finding] = report.findings.as_slice() else { panic!("{}", report.text()) };
    assert!(matches!(finding.kind, FaultKind::Memory | FaultKind::Throws) && finding.bytes == "01", "{finding:?}");
}

#[test]
fn what_codecs_may_do_is_not_found() {
    for script in [
        &uplink("if (b.length < 3) return { errors: ['too short'] };\nreturn { data: { x: b[2] } };"),
        &uplink("return { data: { time: input.recvTime, now: Date.now() }, warnings: [] };"),
        &uplink("try { b[9].x(); } catch (e) { return { errors: [e.message] }; }\nreturn { data: null };"),
        "function Decoder(b, port) { if (b.length < 3) throw new Error('short'); return { x: b[2] }; }",
        "function Decoder(b, port) {\n  if (b.length < 3)\n    throw new RangeError('short');\n  return { x: b[2] }; }",
        "function Decode(fPort, b, variables) { if (fPort !== 2) throw 'port'; return {}; }",
        "function decodeUplink(input) { return { data: {} }; }
         function decodeDownlink(input) { return input.bytes.length ? { data: { a: input.bytes[0] } } : { errors: ['?'] }; }
         function encodeDownlink(input) { return { fPort: 1, bytes: [input.data.a] }; }",
        "function decodeUplink(input) { return { data: {} }; }
         function decodeDownlink(input) { return { data: { unknown: input.bytes } }; }
         function encodeDownlink(input) { return { fPort: 1, bytes: [] }; }",
    ] {
        let report = fuzz(script, "", &plan());
        assert_eq!(found(&report), [], "{script}\n{}", report.text());
        assert!(report.has_targets && report.calls > 1500 && !report.has_failed());
    }
}

#[test]
fn an_engine_error_counts_in_every_dialect() {
    for (script, dialect) in [
        ("function Decoder(b, port) { return { x: b[2].toString() }; }", None),
        ("function Decode(fPort, b) { return { x: b[2].toString() }; }", None),
        ("function Decode(fPort, b) { throw 'no'; }\nfunction Decoder(b) { return b[0].y.z; }", Some(Dialect::V2)),
    ] {
        let report = fuzz(script, "", &FuzzPlan { dialect, ..plan() });
        assert_eq!(found(&report)[0].0, FaultKind::Throws, "{script}\n{}", report.text());
    }
}

#[test]
fn what_an_example_states_is_no_finding() {
    let script = uplink("if (b.length < 1) throw new Error('empty');\nreturn b[0] === 1 ? undefined : { data: {} };");
    let examples = "examples:\n  - { port: 1, bytes: '', outcome: throws }\n";
    assert_eq!(found(&fuzz(&script, examples, &plan())), [(FaultKind::Result, "01", None)]);
    let both = format!("{examples}  - {{ port: 1, bytes: '01', outcome: undefined }}\n");
    assert_eq!(found(&fuzz(&script, &both, &plan())), []);
}

const TRIP: &str = "function decodeDownlink(input) {
  return { data: { minutes: input.bytes[0] | 0, mode: input.bytes[1] | 0 } };
}
function encodeDownlink(input) {
  if (input.data.mode === 9) return { errors: ['no such mode'] };
  return { fPort: input.data.mode === 3 ? null.port : 2, bytes: [input.data.minutes & 0x7f, input.data.mode] };
}";

#[test]
fn decoding_and_encoding_must_agree() {
    let report = fuzz(TRIP, "", &plan());
    let trip: Vec<_> =
        report.findings.iter().find(|finding| finding.kind == FaultKind::RoundTrip).into_iter().collect();
    assert_eq!((report.findings.len(), trip[0].bytes.as_str()), (2, "80"), "{}", report.text());
    assert!(trip[0].message.contains("encoded as 0000; decoding that gives 0 as minutes, and not 128"), "{trip:?}");
    let throws = report.findings.iter().find(|finding| finding.kind == FaultKind::Throws).unwrap();
    assert_eq!((throws.bytes.as_str(), throws.line), ("0003", Some(6)));
    assert_eq!(throws.input.as_ref().unwrap().get(), r#"{"data":{"minutes":0,"mode":3}}"#);
}

#[test]
fn ports_come_from_examples_and_the_plan() {
    let script = uplink("if (input.fPort === 85) b[9].x();\nreturn { data: { x: input.fPort === 3 ? b[0] / 2 : 0 } };");
    let examples = "examples:\n  - { port: 3, bytes: '01' }\n";
    let ports = |examples: &str, ports: &[u8]| {
        let report = fuzz(&script, examples, &FuzzPlan { ports: ports.to_vec(), ..plan() });
        report.findings.iter().map(|finding| (finding.port, finding.kind)).collect::<Vec<_>>()
    };
    assert_eq!(ports("", &[]), []);
    assert_eq!(ports(examples, &[]), [(3, FaultKind::Nan)]);
    assert_eq!(ports(examples, &[85]), [(85, FaultKind::Throws), (3, FaultKind::Nan)]);
}

#[test]
fn bytes_that_make_no_difference_are_named() {
    let examples = "examples:\n  - { port: 1, bytes: '0102030405' }\n  - { port: 1, bytes: '01ff0304' }\n";
    // Byte 2 counts for one value only.
    let script = uplink("return { data: { x: b[1], w: b[0], y: b[2] === 0x77, z: b.length } };");
    let report = fuzz(&script, examples, &plan());
    let unread: Vec<_> =
        report.unread.iter().map(|unread| (unread.length, unread.example, &unread.positions[..])).collect();
    assert_eq!(unread, [(4, 2, &[3][..]), (5, 1, &[3, 4][..])], "{}", report.text());
    let all_values = |unread: &workbench::Unread| unread.tries >= 255 * unread.positions.len() as u64;
    assert!(report.unread.iter().all(all_values) && !report.has_failed(), "{:?}", report.unread);
    assert!(report.text().contains("5 bytes (example 1): bytes 3, 4 made no difference in "), "{}", report.text());

    let all = uplink("return { data: { all: b, y: 1 } };");
    assert_eq!(fuzz(&all, examples, &plan()).unread, []);
    let refused = uplink("return { errors: ['no'] };");
    assert_eq!(fuzz(&refused, examples, &plan()).unread, []);
}

#[test]
fn a_seed_gives_the_same_report_again() {
    let script = uplink("return { data: { x: b[3].toString(), y: b[1] / (b[0] - 77) } };");
    let json = |seed: u64| serde_json::to_string(&fuzz(&script, "", &FuzzPlan { seed, ..plan() })).unwrap();
    // Files have different names.
    let tail = |json: String| json[json.find("\"seed\"").unwrap()..].to_owned();
    assert_eq!(tail(json(3)), tail(json(3)));
    assert_ne!(tail(json(3)), tail(json(4)));
}

#[test]
fn lengths_stay_within_the_plan_and_much_fuel_ends_it() {
    let script = uplink("if (b.length > 5) b.x.y();\nfor (var i = 0; i < 5e5; i++);\nreturn { data: {} };");
    let report = fuzz(&script, "", &FuzzPlan { count: 200, length_max: 5, ..plan() });
    assert_eq!(found(&report), []);
    let ended = report.ended_after.unwrap();
    assert!(ended > 1 && ended < 200 && report.text().contains("much fuel"), "{}", report.text());
}

#[test]
fn a_plan_without_time_ends_with_what_was_found() {
    let script = uplink("b.x.y();");
    let report = fuzz(&script, "", &FuzzPlan { time_max: Some(Duration::ZERO), ..plan() });
    assert_eq!((report.ended_after, report.findings.len(), report.unread.len()), (Some(1), 1, 0), "{}", report.text());
}

#[test]
fn saved_examples_fail_until_the_codec_is_mended() {
    let script = format!("{}\n{TRIP}", uplink("return { data: { x: b[1].toString(), y: b[0] / 2 } };"));
    let dir = Dir::new(&[("one.js", &script)]);
    let file = dir.path().join("one.test.yaml");
    let save = || {
        let codecs = codecs(&[dir.path().join("one.js")]);
        let report = fuzz_all(&codecs, &plan()).remove(0);
        let saved = workbench::save(&report, &codecs[0], &plan()).unwrap();
        assert_eq!(saved.file, file);
        (report.findings.len(), saved.added)
    };
    let (findings, added) = save();
    assert!(findings == 3 && added == 3, "{findings} {added}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("fuzz: throws TypeError at line 2") && text.contains("outcome: valid"), "{text}");
    let (found, totals, report) = test(&[dir.path()]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!((totals.examples, totals.failed), (3, 3), "{report}");
    assert!(report.contains("expected a valid result") && report.contains("TypeError"), "{report}");

    assert_eq!(save().1, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    let mended = "function decodeUplink(input) { return { data: {} }; }";
    dir.save("one.js", &format!("{mended}\n{}", TRIP.replace(" & 0x7f", "").replace("null.port", "3")));
    let (_, totals, report) = test(&[dir.path()]);
    assert_eq!((totals.passed, totals.failed), (3, 0), "{report}");
}

#[test]
fn saving_changes_nothing_that_is_there() {
    let mine = "# mine\nexamples:\n  - { port: 2, bytes: '01ff', output: { data: { x: \"255\" } } } # why\n";
    let dir = Dir::new(&[("one.js", &uplink("return { data: { x: b[1].toString() } };")), ("one.test.yaml", mine)]);
    let codecs = codecs(&[dir.path()]);
    let report = fuzz_all(&codecs, &plan()).remove(0);
    assert_eq!(workbench::save(&report, &codecs[0], &plan()).unwrap().added, 1);
    let text = fs::read_to_string(dir.path().join("one.test.yaml")).unwrap();
    let new =
        "  - description: \"fuzz: throws TypeError at line 2\"\n    port: 2\n    bytes: \"\"\n    outcome: valid\n";
    assert_eq!(text, format!("{mine}{new}"));

    dir.save("one.test.yaml", "examples: [{ port: 2, bytes: '01ff' }]\n");
    let error = workbench::save(&report, &codecs[0], &plan()).unwrap_err();
    assert!(error.reason().contains("not a list with a line for each"), "{}", error.reason());
    dir.save("one.test.yaml", "script: two.js\nexamples: []\n");
    let error = workbench::save(&report, &codecs[0], &plan()).unwrap_err();
    assert!(error.reason().contains("another script"), "{}", error.reason());
}

#[test]
fn a_codec_that_cannot_be_fuzzed_says_why() {
    let dir = Dir::new(&[("bad.js", "function decodeUplink("), ("down.js", "function Encoder(o) { return [1]; }")]);
    let codecs = codecs(&["bad.js", "down.js"].map(|name| dir.path().join(name)));
    let reports = fuzz_all(&codecs, &plan());
    assert!(reports[0].has_failed() && reports[0].text().contains("line 1"), "{}", reports[0].text());
    assert!(!reports[1].has_failed() && reports[1].text().contains("no function that takes a payload"));
}
