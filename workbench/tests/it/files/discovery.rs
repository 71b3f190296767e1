//! Codecs in directories: scripts without examples, files of other editors, drivers of several files.

use std::fs;

use airlock_workbench as workbench;

use crate::support::{Dir, engine, test};

const SCRIPT: &str = "function decodeUplink(input) { return { data: { a: input.bytes[0] } }; }";
const EXAMPLES: &str = r#"[{"type": "uplink", "input": {"fPort": 1, "bytes": [5]}, "output": {"data": {"a": 5}}}]"#;
const YAML: &str = "uplinkDecoder:
  fileName: a.js
  examples:
    - {description: x, input: {fPort: 1, bytes: [5]}, output: {data: {a: 5}}}
";

fn utf_16(text: &str, mark: bool) -> Vec<u8> {
    let mark = mark.then_some(0xfeff_u16);
    mark.into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

#[test]
fn scripts_without_examples_are_codecs_and_other_files_are_not() {
    let v2 = "function Decoder(bytes, port) { return { a: bytes[0] }; }";
    let dir = Dir::new(&[
        ("a.js", SCRIPT),
        ("v/b.js", "module.exports = { decodeUplink: function () { return {}; } };"),
        ("v/c.txt", v2),
        ("v/util.js", "exports.f = function (Decoder) { return Decoder; };"),
        ("v/b.test.js", "test(decodeUplink)"),
        ("v/readme.txt", "decoders"),
    ]);
    let (found, totals, text) = test(&[dir.path()]);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let ids: Vec<_> = found.codecs.iter().map(|codec| codec.id.as_str()).collect();
    assert_eq!((ids, totals.codecs_not_loaded), (vec!["a", "v/b", "v/c"], 0), "{text}");
    assert!(totals.to_string().contains("\n3 scripts without examples"), "{totals}");
    let (found, ..) = test(&[dir.path().join("v/c.txt")]);
    assert_eq!((found.problems.len(), found.codecs.len()), (0, 1), "{:?}", found.problems);
}

#[test]
fn a_script_with_examples_or_a_problem_is_not_found_a_second_time() {
    let examples = [("d/index.js", SCRIPT), ("d/examples/x.examples.json", EXAMPLES)];
    let (found, totals, _) = test(&[Dir::new(&examples).path()]);
    assert_eq!((found.codecs.len(), totals.passed), (1, 1));
    let found = workbench::find(&[Dir::new(&examples).path()], Some("nobody"), &engine());
    assert_eq!(found.codecs.len(), 0);
    let bad = Dir::new(&[("door.js", SCRIPT), ("door.test.yaml", "examples: [")]);
    let (found, ..) = test(&[bad.path()]);
    assert_eq!((found.codecs.len(), found.problems.len()), (0, 1));
}

#[test]
fn byte_order_marks_and_utf_16_are_read_in_every_kind_of_file() {
    for (name, text) in [
        ("a-codec.yaml", YAML),
        ("a.test.yaml", "examples: [{bytes: 05, output: {data: {a: 5}}}]"),
        ("a.examples.json", EXAMPLES),
    ] {
        let marked = format!("\u{feff}{text}").into_bytes();
        for bytes in [text.as_bytes().to_vec(), marked, utf_16(text, true), utf_16(text, false)] {
            let dir = Dir::new(&[]);
            fs::write(dir.path().join("a.js"), utf_16(SCRIPT, true)).unwrap();
            fs::write(dir.path().join(name), &bytes).unwrap();
            let (found, totals, text) = test(&[dir.path()]);
            let problems = &found.problems;
            assert_eq!((totals.codecs, totals.passed), (1, 1), "{name} {:?}: {problems:?}\n{text}", &bytes[..4]);
        }
    }
}

#[test]
fn json_lines_in_utf_16_are_told_of() {
    let line = format!("{}\n", serde_json::json!({ "script": SCRIPT, "examples": [] }));
    for mark in [true, false] {
        let dir = Dir::new(&[("a.js", SCRIPT)]);
        fs::write(dir.path().join("x.jsonl"), utf_16(&line, mark)).unwrap();
        for path in [dir.path(), dir.path().join("x.jsonl")] {
            let (found, ..) = test(&[path]);
            assert!(found.problems[0].to_string().ends_with("x.jsonl, line 1: it is UTF-16: save it as UTF-8"));
        }
    }
}

#[test]
fn a_driver_of_several_files_is_bundled() {
    let decoder = "const { plus } = require('./lib/util');
exports.decodeUplink = function (input) { return { data: { a: plus(input.bytes[0]), at: new Error().stack } }; };";
    let decoder = decoder.replace(", at: new Error().stack", "");
    let util = "var offset = require(\"../offset.json\").offset; var own = require('./util');
exports.plus = function (x) { return own === exports ? x + offset : NaN; };";
    let dir = Dir::new(&[
        ("decoder.js", &decoder),
        ("lib/util.js", util),
        ("offset.json", "{\"offset\": 2}"),
        ("examples.json", &EXAMPLES.replace("\"a\": 5", "\"a\": 7")),
    ]);
    for path in [dir.path(), dir.path().join("decoder.js"), dir.path().join("examples.json")] {
        let (found, totals, text) = test(&[path]);
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        assert_eq!((totals.codecs, totals.passed), (1, 1), "{text}");
    }
    assert!(test(&[dir.path()]).0.codecs[0].script.starts_with(&decoder));
}

#[test]
fn examples_without_their_script_say_nothing_about_others() {
    let files = [("good.js", SCRIPT), ("good.test.yaml", "examples: [{bytes: 05, output: {data: {a: 5}}}]")];
    for orphan in ["test_decode_gone.json", "gone.test.yaml", "gone-codec.yaml"] {
        let text = if orphan == "gone-codec.yaml" { YAML } else { "[]" };
        let text = if orphan == "gone.test.yaml" { "examples: []" } else { text };
        let dir = Dir::new(&[files[0], files[1], (orphan, text)]);
        let (found, totals, _) = test(&[dir.path()]);
        assert_eq!((totals.passed, found.problems.len()), (1, 1), "{orphan}: {:?}", found.problems);
        assert!(found.problems[0].is_orphan(), "{orphan}: {:?}", found.problems);
        let (found, ..) = test(&[dir.path().join(orphan)]);
        assert!(found.problems.len() == 1 && !found.problems[0].is_orphan(), "{orphan}: {:?}", found.problems);
    }
}
