//! Codecs of our own in each layout, as files in `fixtures/`, and the faults of bad ones.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use airlock_workbench as workbench;
use workbench::{Found, Rules, Totals};

use crate::support::{Dir, engine, fixture, test, test_with};

fn totals(layout: &str) -> (Vec<String>, Totals) {
    let (found, totals, text) = test(&[fixture(layout)]);
    assert!(found.problems.is_empty() && totals.failed == 0, "{:?}\n{text}", found.problems);
    (found.codecs.iter().map(|codec| codec.id.clone()).collect(), totals)
}

// Conformance: functions test: five layouts and one of our own, whole repositories
#[test]
fn reads_every_layout_by_itself() {
    for (layout, ids, examples) in [
        ("device_repository", &["acme/meter"][..], 5),
        ("device_profiles", &["acme/lamp"], 2),
        ("packages", &["acme/bundle", "acme/door", "acme/legacy"], 4),
        ("milesight", &["th-series/th1", "th-series/th1:encoder"], 1),
        ("own", &["thermometer"], 3),
    ] {
        let (found, totals) = totals(layout);
        assert_eq!(
            (found, totals.passed, totals.examples),
            (ids.iter().map(|id| (*id).to_owned()).collect(), examples, examples)
        );
    }
}

// Conformance: functions test: five layouts and one of our own, whole repositories
#[test]
fn reads_many_layouts_in_one_tree_and_filters_them() {
    let (found, totals, text) = test(&[fixture("")]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!((totals.codecs, totals.passed, totals.failed), (11, 24, 0), "{text}");
    let found = workbench::find(&[fixture("")], Some("acme/d"), &engine());
    assert_eq!(found.codecs.iter().map(|codec| codec.id.as_str()).collect::<Vec<_>>(), ["packages/acme/door"]);
    let found = workbench::find(&[fixture("")], Some("nobody/x"), &engine());
    assert_eq!(found.problems[0].to_string(), "no codec id contains `nobody/x`");
}

#[test]
fn drivers_of_actility_take_and_return_messages_as_they_are() {
    let script = "exports.decodeUplink = function (input) { return { level: input.bytes[0], at: input.time }; };
exports.decodeDownlink = function (input) { return { minutes: input.bytes[0] }; };
exports.encodeDownlink = function (message) { return { bytes: [message.minutes], fPort: 4 }; };";
    let uplink = r#"{"type": "uplink", "bytes": "05", "fPort": 1, "time": "2026-01-01T00:00:00.000+01:00",
        "data": {"level": 5, "at": "2026-01-01T00:00:00.000+01:00"}, "points": {"level": {"record": 5}}}"#;
    let downlink = r#"{"description": "often", "type": "downlink", "bytes": "01", "fPort": 4, "data": {"minutes": 1}}"#;
    let examples = format!("[{uplink},\n{downlink},\n{}]", downlink.replace("\"01\"", "\"02\""));
    let files = [("driver/index.js", script), ("driver/examples/level.examples.json", &examples)];
    let (found, totals, text) = test(&[Dir::new(&files).path()]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!((totals.codecs, totals.examples, totals.passed, totals.failed), (1, 5, 3, 2), "{text}");
    assert!(text.contains("downlink-decode, port 4, 02") && text.contains("bytes[0]: expected 2, got 1"), "{text}");

    let only_up = [("driver/index.js", "exports.decodeUplink = function (input) { return {}; };"), files[1]];
    let (found, ..) = test(&[Dir::new(&only_up).path()]);
    let told: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert!(told.len() == 2 && told[0].ends_with("example 2: the script has no function for downlinks"), "{told:?}");
}

#[test]
fn a_package_says_that_its_encoder_takes_the_message() {
    let script = "function encodeDownlink(input) { return { bytes: [input.minutes], fPort: 4 }; }";
    let examples =
        r#"[{"type": "downlink-encode", "input": {"data": {"minutes": 5}}, "output": {"bytes": [5], "fPort": 4}}]"#;
    for (signature, passed) in [("actility", 1), ("lora-alliance", 0)] {
        let signature = format!("name: door\nsignature: {signature}\n");
        let dir = Dir::new(&[("index.js", script), ("examples.json", examples), ("driver.yaml", &signature)]);
        let (_, totals, text) = test(&[dir.path()]);
        assert_eq!((totals.passed, totals.failed), (passed, 1 - passed), "{signature}: {text}");
    }
}

#[test]
fn undefined_members_are_null_in_the_things_stack() {
    let codec = "uplinkDecoder:\n  fileName: meter.js\n  examples:\n    - input: { fPort: 1, bytes: [1] }\n      \
                 output: { data: { level: null } }\n";
    for (member, failed) in [("undefined", 0), ("null", 0), ("1", 1)] {
        let script = format!("function decodeUplink() {{ return {{ data: {{ level: {member} }} }}; }}");
        let dir = Dir::new(&[("vendor/acme/meter-codec.yaml", codec), ("vendor/acme/meter.js", &script)]);
        let (_, totals, text) = test(&[dir.path()]);
        assert_eq!((totals.passed, totals.failed), (1 - failed, failed), "{member}: {text}");
    }
}

#[test]
fn a_file_alone_is_tested_with_what_belongs_to_it() {
    let profile = "device_profiles/vendors/acme/codecs";
    for (path, passed) in [
        ("own/thermometer.test.yaml".to_owned(), 3),
        ("own/thermometer.js".to_owned(), 3),
        ("device_repository/vendor/acme/meter-codec.yaml".to_owned(), 5),
        (format!("{profile}/lamp.js"), 2),
        (format!("{profile}/test_encode_lamp.json"), 1),
        ("packages/vendors/acme/drivers/door/examples.json".to_owned(), 2),
    ] {
        let (found, totals, text) = test(&[fixture(&path)]);
        assert_eq!((found.problems.len(), totals.passed), (0, passed), "{path}: {text}");
    }
}

#[test]
fn one_codec_serves_five_networks_as_the_page_shows() {
    let (_, totals, text) = test(&[fixture("networks")]);
    assert_eq!((totals.codecs, totals.passed, totals.failed), (3, 9, 0), "{text}");
    let page = include_str!("../../../../docs/codecs-ci.md");
    for name in ["codec.js", "codec.test.yaml", "ttn-v2.test.yaml", "chirpstack3.test.yaml"] {
        let text = fs::read_to_string(fixture("networks").join(name)).unwrap();
        assert!(page.contains(&text), "docs/codecs-ci.md shows another {name}");
    }
}

// Conformance: functions test: five layouts and one of our own, whole repositories
#[test]
fn differences_depend_on_the_rules() {
    let dir = Dir::new(&[
        ("a.js", "function decodeUplink() { return { data: { b: 1, a: 2 } } }"),
        ("a.test.yaml", "examples:\n  - { bytes: 00, output: { data: { a: 2, b: 1 } } }\n"),
    ]);
    let failed = |exact| test_with(&[dir.path()], Rules { exact, all: false }).1.failed;
    assert_eq!((failed(false), failed(true)), (0, 1));
}

// Conformance: functions test: five layouts and one of our own, whole repositories
#[test]
fn a_codec_that_cannot_be_loaded_fails_with_all_its_examples() {
    let dir =
        Dir::new(&[("a.js", "function decodeUplink( {"), ("a.test.yaml", "examples: [{bytes: 00}, {bytes: 01}]")]);
    let (_, totals, text) = test(&[dir.path()]);
    assert_eq!((totals.codecs_not_loaded, totals.examples, totals.failed, totals.passed), (1, 2, 2, 0));
    assert!(text.starts_with("FAIL  a  2 failed\n") && text.contains("cannot be loaded"), "{text}");
}

// Conformance: functions test: five layouts and one of our own, whole repositories
#[test]
fn one_bad_file_or_example_does_not_stop_the_others() {
    let script = "function decodeUplink() { return {} }";
    let dir = Dir::new(&[
        ("good.js", script),
        ("good.test.yaml", "examples: [{bytes: 00, output: {}}, {bytes: zz}, {byte: 00}, {bytes: [256]}]"),
        ("lost.test.yaml", "examples: []"),
        ("twice.test.yaml", "examples: []\nexamples: []"),
        ("other.test.yaml", "examples: []\nexample: []"),
        ("dialect.test.yaml", "examples: []\ndialect: v3"),
        ("later.test.yaml", "script: good.js\nexamples:\n  - bytes: 00\n    outputt: {}"),
        ("out.test.yaml", "script: ../../../etc/passwd"),
        ("x-codec.yaml", "uplinkDecoder:\n  examples: []\ndownlinkEncoder:\n  fileName: gone.js\n"),
        ("y.js", script),
        ("test_decode_y.json", "[{\"input\": {\"bytes\": [1]}, \"expected\": {}},\n {\"input\": {}},\n 1]"),
        ("test_encode_y.json", "while (true) {}"),
        ("p/examples.json", "[]"),
        ("q/examples.json", "[{\"type\": \"other\"}]"),
        ("q/index.js", script),
        ("z.jsonl", "{\"script\": \"\"}\n{\n"),
        ("other.jsonl", "{\"unrelated\": 1}\n"),
    ]);
    let (found, totals, text) = test(&[dir.path()]);
    let problems: Vec<String> = found.problems.iter().map(|problem| format!("{problem}")).collect();
    for expected in [
        "good.test.yaml, line 1: example 2: `bytes` not valid",
        "good.test.yaml, line 1: example 3: unknown member `byte`",
        "good.test.yaml, line 1: example 4: `bytes` not valid: 256 is no byte",
        "lost.js",
        "twice.test.yaml, line 2: `examples` appears twice",
        "other.test.yaml, line 2: unknown member `example`",
        "dialect.test.yaml, line 2: `dialect` must be ts013",
        "later.test.yaml, line 4: example 1: unknown member `outputt`",
        "passwd",
        "x-codec.yaml, line 2: `fileName` is missing in `uplinkDecoder`",
        "gone.js",
        "test_decode_y.json, line 2: example 2: `bytes` are missing",
        "test_decode_y.json, line 3: example 3",
        "test_encode_y.json, line 1: neither JSON nor a JavaScript value",
        "p/examples.json, line 1: there is no script beside it",
        "q/examples.json, line 1: example 1: the `type` is none of TS013",
        "z.jsonl, line 1: the script is empty",
        "z.jsonl, line 2: not a JSON object",
    ] {
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected} in {problems:#?}");
    }
    assert_eq!((problems.len(), totals.passed, totals.failed), (18, 2, 0), "{problems:#?}\n{text}");
}

#[test]
fn nothing_outside_of_the_tree_is_read() {
    let dir =
        Dir::new(&[("secret.js", "function decodeUplink() { return {} }"), ("tree/a.test.yaml", "script: link.js")]);
    let tree = dir.path().join("tree");
    symlink("../secret.js", tree.join("link.js")).unwrap();
    symlink("..", tree.join("up")).unwrap();
    fs::create_dir(tree.join("node_modules")).unwrap();
    fs::write(tree.join("node_modules/b.test.yaml"), "nothing: valid").unwrap();
    let found = workbench::find(&[tree], None, &engine());
    assert_eq!((found.codecs.len(), found.problems.len()), (0, 1), "{found:?}");
    let reason = std::error::Error::source(&found.problems[0]).unwrap().to_string();
    assert!(reason.contains("outside the directory"), "{reason}");
}

#[test]
fn a_list_has_a_bound() {
    let examples = vec!["{bytes: 00}"; 1025].join(", ");
    let dir = Dir::new(&[
        ("a.js", "function decodeUplink() {}"),
        ("a.test.yaml", &format!("examples: [{examples}]")),
        ("b.js", "function decodeUplink() {}"),
    ]);
    let Found { codecs, problems, .. } = workbench::find(&[dir.path()], None, &engine());
    let problem = problems[0].to_string();
    // The other one is a script without examples.
    assert!(codecs.iter().all(|codec| codec.id == "b") && problem.contains("more than 1024 examples"), "{problem}");
    let paths: Vec<PathBuf> = vec!["-".into(), "-".into()];
    assert!(workbench::find(&paths, None, &engine()).problems[0].to_string().contains("appears more than once"));
}
