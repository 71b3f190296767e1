//! Writing results into the files that state what should come out.

use std::{convert::Infallible, fs};

use airlock_workbench::{self as workbench, Rules, Totals, Updates, Written};

use crate::support::{Dir, engine};

const SCRIPT: &str = "function decodeUplink(input) { return { data: { level: input.bytes[0] } }; }
function normalizeUplink(input) { return { data: { water: { level: input.data.level / 1000 } } }; }";

const CODEC: &str = "\
# A water level meter.
uplinkDecoder:
  fileName: meter.js
  examples:
    - description: low # It is.
      input: { fPort: 1, bytes: [5] }
      output:
        data:
          level: 9
      normalizedOutput:
        data:
          water:
            level: 0.005
";

fn update(dir: &Dir) -> (Totals, Written) {
    let engine = engine();
    let found = workbench::find(&[dir.path()], None, &engine);
    let mut updates = Updates::default();
    let Ok(totals) = workbench::run(&engine, &found.codecs, Rules::default(), 1, |report| {
        updates.add(report);
        Ok::<(), Infallible>(())
    });
    (totals, updates.write())
}

// Conformance: functions test: five layouts and one of our own, whole repositories
#[test]
fn a_result_is_written_and_what_depends_on_it_follows() {
    let dir = Dir::new(&[("vendor/acme/meter-codec.yaml", CODEC), ("vendor/acme/meter.js", SCRIPT)]);
    let file = dir.path().join("vendor/acme/meter-codec.yaml");
    // The normalizer ran on the wrong output, so what it returned is not written.
    let (totals, written) = update(&dir);
    assert_eq!((totals.failed, written.examples, written.left), (2, 1, 1), "{written:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), CODEC.replace("level: 9", "level: 5"));
    let (totals, written) = update(&dir);
    assert_eq!((totals.failed, totals.passed, written.examples, written.left), (0, 2, 0, 0), "{written:?}");
}

#[test]
fn an_example_that_throws_is_left() {
    let script = "function decodeUplink() { throw new Error('no'); }";
    let dir = Dir::new(&[("vendor/acme/meter-codec.yaml", CODEC), ("vendor/acme/meter.js", script)]);
    let (_, written) = update(&dir);
    assert_eq!((written.examples, written.left), (0, 2), "{written:?}");
    assert_eq!(fs::read_to_string(dir.path().join("vendor/acme/meter-codec.yaml")).unwrap(), CODEC);
}

/// A file with examples of `function decodeUplink(input) { return { level: input.bytes[0] } }`, and the updated one.
fn check(name: &str, before: &str, after: &str, refused: usize) {
    let script = "function decodeUplink(input) { return { level: input.bytes[0] }; }";
    let dir = Dir::new(&[(name, before), ("meter.js", script)]);
    let (_, written) = update(&dir);
    assert_eq!((fs::read_to_string(dir.path().join(name)).unwrap().as_str(), written.problems.len()), (after, refused));
    let (totals, written) = update(&dir);
    assert_eq!((totals.failed, totals.shown, written.examples), (refused, 0, 0), "{after}");
}

#[test]
fn an_updated_file_says_the_same_otherwise() {
    let before = "examples:
  - bytes: \"07\"
    description: |
      two
      lines
  # next
  - bytes: \"08\"
    output: # what comes out
  - bytes: \"09\"
    output: \"q\"   # c
  - bytes: 10
    variables:
";
    let after = "examples:
  - bytes: \"07\"
    description: |
      two
      lines
    output: {level: 7}
  # next
  - bytes: \"08\"
    output: {level: 8} # what comes out
  - bytes: \"09\"
    output: {level: 9}   # c
  - bytes: 10
    variables:
    output: {level: 16}
";
    check("meter.test.yaml", before, after, 0);
    let name = "test_decode_meter.json";
    let before = r#"[{"input": {"bytes": [1]} // payload
}, {"input": {"bytes": [2]}, "expected": 1, "expected": 2}]"#;
    let after = r#"[{"input": {"bytes": [1]}, "expected": {"level":1} // payload
}, {"input": {"bytes": [2]}, "expected": 1, "expected": {"level":2}}]"#;
    check(name, before, after, 0);
}

#[test]
fn what_cannot_be_updated_is_told_and_stays() {
    let text = |second: u8| {
        format!(
            "examples:\n  - {{bytes: 01, output: &o {{level: 2}}}}\n  - {{bytes: 02, output: *o}}\n  \
             - {{bytes: 03, output: {{level: {second}}}}}\n"
        )
    };
    check("meter.test.yaml", &text(4), &text(3), 1);
}

/// A file of each layout, in which one value differs, and what must be replaced by what.
const LAYOUTS: &[(&str, &str, [&str; 2])] = &[
    (
        "meter-codec.yaml",
        "uplinkDecoder:
  fileName: meter.js
  examples:
    - description: low # It is.
      input: { fPort: 1, bytes: [5, 1] }
      output:
        data:
          level: 9 # cm
          flags: [ 1, 0x01 ] # two
        warnings: []
",
        ["level: 9", "level: 5"],
    ),
    (
        "test_decode_meter.json",
        "[
    {
        \"name\": \"low\",
        \"input\": {\"fPort\": 1, \"bytes\": [0x05, 1]}, // bytes
        \"expected\": {
            \"data\": {
                \"level\": 9, // cm
                \"flags\": [1, 1]
            }
        }
    }
]
",
        ["\"level\": 9,", "\"level\": 5,"],
    ),
    (
        "meter.examples.json",
        "[{
  \"type\": \"uplink\", \"input\": { \"fPort\": 1, \"bytes\": \"0501\" },
  \"output\": { \"data\": { \"level\": \"SKIP_NUMBER\", \"flags\": [ 1, 2 ] }, \"errors\": [] }
}]
",
        ["[ 1, 2 ]", "[ 1, 1 ]"],
    ),
    (
        "meter.test.yaml",
        "examples:
  - bytes: 05 01
    output:
      # what is in it
      flags: [1, 2] # two
      level: 5.0
",
        ["[1, 2]", "[1, 1]"],
    ),
    (
        "codecs.jsonl",
        "{\"script_file\": \"meter.js\", \"examples\": [{\"bytes_hex\": \"0501\", \"expected\": {\"level\": 5.0,  \"flags\": [2, 1]}}]}
",
        ["[2, 1]", "[1, 1]"],
    ),
];

// Conformance: functions test: five layouts and one of our own, whole repositories
#[test]
fn only_values_that_differ_are_written_in_every_layout() {
    // A decoder of version 2 returns what TS013 has in `data`.
    let script = "function Decoder(bytes) { return { level: bytes[0], flags: [bytes[1], 1] }; }";
    for (name, before, [old, new]) in LAYOUTS {
        let dir = Dir::new(&[(name, before), ("meter.js", script)]);
        let (totals, written) = update(&dir);
        assert_eq!((totals.failed, written.examples, written.left), (1, 1, 0), "{name}: {written:?}");
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), before.replace(old, new), "{name}");
        let (totals, _) = update(&dir);
        assert_eq!((totals.failed, totals.passed), (0, 1), "{name}");
    }
}

#[test]
fn lines_end_as_they_did() {
    let script = "function decodeUplink(input) { return { data: { level: input.bytes[0] } }; }";
    let before = "script: a.js\nexamples:\n  - bytes: '05'\n    output:\n      data:\n        level: 1\n        gone: 2\n  - bytes: '06'\n";
    for end in ["\n", "\r\n"] {
        let dir = Dir::new(&[("a.js", script), ("a.test.yaml", &before.replace('\n', end))]);
        update(&dir);
        let after = fs::read_to_string(dir.path().join("a.test.yaml")).unwrap();
        assert!(!after.contains("gone") && after.contains("level: 5") && after.contains("level: 6"), "{after}");
        assert_eq!(after.matches('\n').count(), after.matches(end).count(), "{after:?}");
        assert!(!after.contains("\r\r"), "{after:?}");
    }
}

#[test]
fn what_is_left_has_a_reason() {
    let script = "function decodeUplink(input) { if (input.bytes[0] > 1) throw new Error('no'); return {}; }";
    let examples = "examples:\n  - { bytes: 02, output: {} }\n  - { bytes: 01, outcome: throws }\n";
    let dir = Dir::new(&[("meter.test.yaml", examples), ("meter.js", script)]);
    let (_, written) = update(&dir);
    let reasons: Vec<_> =
        written.reasons.iter().map(|(reason, count)| (reason.split(':').next().unwrap(), *count)).collect();
    assert_eq!(
        (written.examples, reasons.as_slice()),
        (
            0,
            &[("nothing was returned that could be expected", 1), ("no value is stated that could be replaced", 1)][..]
        )
    );
    assert_eq!(fs::read_to_string(dir.path().join("meter.test.yaml")).unwrap(), examples);
}
