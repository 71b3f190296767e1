//! Examples that cannot be tested are told of: none of these may pass as a codec without examples.

use std::path::PathBuf;

use airlock_workbench as workbench;

use crate::support::{Dir, engine};

const SCRIPT: &str = "function decodeUplink() { return {} }";
const GOOD: &str = "examples: [{bytes: 00, output: {}}]";

/// Returns the problems of `names` in a directory with `files`, and the number of codecs that are found.
fn find(files: &[(&str, &str)], names: &[&str]) -> (Vec<String>, usize) {
    let dir = Dir::new(files);
    let paths: Vec<PathBuf> = names.iter().map(|name| dir.path().join(name)).collect();
    let found = workbench::find(&paths, None, &engine());
    (found.problems.iter().map(|problem| format!("{problem}")).collect(), found.codecs.len())
}

#[track_caller]
fn assert_told(files: &[(&str, &str)], names: &[&str], expected: &str) {
    let (problems, _) = find(files, names);
    assert!(problems.len() == 1 && problems[0].contains(expected), "{expected} in {problems:?}");
}

#[test]
fn a_script_alone_is_tested_with_all_examples_or_with_a_complaint() {
    for (name, text, expected) in [
        ("door.test.yaml", "examples: [{bytes: 00}", "door.test.yaml, line"),
        ("door.test.yaml", "examples: [{bytes: 00}, {bytes: zz}]", "example 2: `bytes` not valid"),
        ("test_decode_door.json", "[{\"input\": {}}]", "example 1: `bytes` are missing"),
        ("x-codec.yaml", "uplinkDecoder: {fileName: door.js, examples: [{input: {}}]}", "`bytes` are missing"),
    ] {
        let files = [("door.js", SCRIPT), (name, text)];
        assert_told(&files, &["door.js"], expected);
        let files =
            [("door.js", SCRIPT), (name, text), ("good.test.yaml", "{script: door.js, examples: [{bytes: 00}]}")];
        assert_told(&files, &["door.js"], expected);
    }
    let other = [("door.js", SCRIPT), ("door.test.yaml", GOOD), ("other.test.yaml", "examples: ["), ("other.js", "")];
    assert_eq!(find(&other, &["door.js"]), (Vec::new(), 1));
}

#[test]
fn a_script_alone_has_no_part_in_what_is_wrong_with_others() {
    let others = [
        ("door.js", SCRIPT),
        ("lamp.js", SCRIPT),
        ("lamp.test.yaml", "examples: ["),
        ("test_decode_lamp.json", "["),
        ("x-codec.yaml", "uplinkDecoder: {fileName: bell.js, examples: []}\ndownlinkEncoder: {fileName: door.js}"),
    ];
    assert_eq!(find(&others, &["door.js"]), (Vec::new(), 1));
    let (problems, codecs) = find(&others[..4], &["lamp.js"]);
    assert_eq!((problems.len(), codecs), (2, 1), "{problems:?}");
    // Whose examples these are cannot be told.
    assert_told(&[others[0], others[1], ("more.test.yaml", "examples: [")], &["door.js"], "more.test.yaml");
}

#[test]
fn what_is_named_twice_is_tested_once() {
    let (good, bad) = ("examples: [{bytes: 00, output: {}}]", "examples: [");
    let files =
        [("own/door.js", SCRIPT), ("own/door.test.yaml", good), ("own/v2.test.yaml", "{script: door.js, dialect: v2}")];
    for names in [
        &["own/door.js"][..],
        &["own/door.js", "own/../own/door.js"],
        &["own", "own/door.js", "", "own/door.test.yaml"],
    ] {
        assert_eq!(find(&files, names), (Vec::new(), 2), "{names:?}");
    }
    let lines = format!("{{\"script\": \"{SCRIPT}\"}}\n").repeat(2);
    assert_eq!(find(&[("a.jsonl", &lines)], &["a.jsonl"]), (Vec::new(), 2));
    for names in [&["door.test.yaml"][..], &["door.test.yaml", "./door.test.yaml", ""]] {
        let (problems, _) = find(&[("door.js", SCRIPT), ("door.test.yaml", bad)], names);
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}

#[test]
fn a_script_that_its_examples_name_in_another_way_is_the_same() {
    let codec = "uplinkDecoder: {fileName: ./door.js, examples: [{input: {bytes: [0]}, output: {}}]}";
    let dir = Dir::new(&[("door.js", SCRIPT), ("x-codec.yaml", codec)]);
    let found = workbench::find(&[dir.path().join("./door.js")], None, &engine());
    assert_eq!(found.codecs[0].examples.len(), 1, "{found:?}");
}

#[test]
fn examples_of_a_wrong_shape_are_told() {
    for (text, expected) in [
        ("examples: {bytes: 00}", "line 1: `examples` must be a list"),
        ("script: door.js\nexamples: none", "line 2: `examples` must be a list"),
        ("examples:", "line 1: `examples` must be a list"),
        ("", "line 1: it is empty: write `examples:`"),
        ("# later", "line 1: it is empty: write `examples:`"),
        ("- {bytes: 00}", "line 1: it is a list: write `examples:` above it"),
        ("examples: [00]", "line 1: example 1: it must be an object, with some of description, function"),
        ("examples: []\n---\nexamples: []", "line 2: it has a second document: write one file for each"),
        ("script: 5", "`script` must be text"),
        ("dialect: 3", "`dialect` must be text"),
        ("examples: [{bytes: 00, input: {}}]", "example 1: `uplink` takes no `input`"),
        (
            "examples: [{function: downlink-encode, bytes: 00, input: {}}]",
            "example 1: `downlink-encode` takes no `bytes`",
        ),
    ] {
        assert_told(&[("door.js", SCRIPT), ("door.test.yaml", text)], &["."], expected);
    }
    for (text, expected) in [
        (
            "uplinkDecoder:\n  fileName: door.js\n  exampels: []",
            "`exampels`: did you mean `examples`? in `uplinkDecoder`",
        ),
        ("uplinkDecoder:\n  fileName: door.js\n  examples: {}", "line 3: `examples` must be a list in `uplinkDecoder`"),
        ("uplinkDecoder: {fileName: door.js}\ndownlinkEncodr: {}", "did you mean `downlinkEncoder`?"),
        (
            "uplinkDecoder: {fileName: door.js, examples: [{input: {bytes: [0]}, ouput: {}}]}",
            "unknown member `ouput`: did you mean `output`?",
        ),
    ] {
        assert_told(&[("door.js", SCRIPT), ("door-codec.yaml", text)], &["."], expected);
    }
    let misspelt = "[{\"input\": {\"bytes\": [0]}, \"expacted\": {}}]";
    let files = [("door.js", SCRIPT), ("test_decode_door.json", misspelt)];
    assert_told(&files, &["."], "example 1: unknown member `expacted`: did you mean `expected`?");
}

#[test]
fn examples_without_a_script_are_told() {
    let files = [("lamp2.js", SCRIPT), ("test_decode_lamp.json", "[]"), ("good.js", SCRIPT), ("good.test.yaml", GOOD)];
    assert_told(&files, &["."], "test_decode_lamp.json, line 1: there is no lamp.js beside it");
}

#[test]
fn a_named_file_that_is_not_there_or_says_nothing_is_told() {
    let files = [("door.js", SCRIPT), ("door.test.yaml", GOOD), ("other.yaml", "a: 1"), ("lamp-codec.json", "{}")];
    for (name, expected) in [
        ("dor.test.yaml", "dor.test.yaml"),
        ("dor.js", "dor.js"),
        ("other.yaml", "other.yaml, line 1: there are no codecs in it"),
        ("lamp-codec.json", "lamp-codec.json, line 1: there are no codecs in it"),
    ] {
        assert_told(&files, &["door.test.yaml", name], expected);
    }
}

#[test]
fn a_script_of_a_directory_that_cannot_be_read_is_told() {
    let long = format!("{SCRIPT}//{}", "x".repeat(1 << 20));
    for (text, expected) in [
        (b"function decodeUplink() { return '\xb0C' }".to_vec(), "not UTF-8"),
        (long.into_bytes(), "more than 1048576 bytes"),
        (
            "\u{feff}".to_owned().into_bytes().into_iter().chain(*b"function decodeUplink() {\xff}").collect(),
            "not UTF-8",
        ),
    ] {
        let dir = Dir::new(&[("good.js", SCRIPT)]);
        std::fs::write(dir.path().join("bad.js"), text).unwrap();
        let found = workbench::find(&[dir.path()], None, &engine());
        let problems: Vec<_> = found.problems.iter().map(workbench::BadInput::describe).collect();
        assert!(problems.len() == 1 && problems[0].contains(expected), "{expected} in {problems:?}");
        assert_eq!(found.codecs.len(), 1);
    }
}

#[test]
fn a_script_that_is_nested_without_bound_is_one_that_cannot_be_loaded() {
    let nested = format!("{SCRIPT}; {}", "(".repeat(1_000_000));
    assert_eq!(find(&[("good.js", SCRIPT), ("nested.js", &nested)], &[""]), (Vec::new(), 2));
}

#[test]
fn what_only_names_a_function_is_no_codec() {
    for (name, text) in [
        ("test.js", "const codec = require('./good.js'); console.log(codec.decodeUplink({ bytes: [] }))"),
        ("README.txt", "The function decodeUplink(input) decodes uplinks."),
        ("notes.js", "// decodeUplink is elsewhere"),
        ("good.min.js", SCRIPT),
        ("good.spec.mjs", SCRIPT),
    ] {
        assert_eq!(find(&[("good.js", SCRIPT), (name, text)], &[""]), (Vec::new(), 1), "{name}");
    }
    for (name, text) in [
        ("a.TXT", SCRIPT),
        ("b.js", "exports.decodeUplink = () => ({})"),
        ("c.js", "module.exports = { decodeUplink(input) { return {} } }"),
        ("d.js", "export function decodeUplink() { return {} }"),
        ("e.js", "function decodeUplink( {"),
        ("f.min.js", SCRIPT),
    ] {
        assert_eq!(find(&[(name, text)], &[""]), (Vec::new(), 1), "{name}");
    }
}

#[test]
fn a_file_of_json_lines_that_is_none_is_told_of() {
    let files = [("door.js", SCRIPT), ("door.test.yaml", GOOD)];
    for bytes in ["\u{1}\u{7f}\0\u{2}", "version https://example.com/pointer\n", "{\0\0"] {
        let (problems, codecs) = find(&[&files[..], &[("more.jsonl", bytes)]].concat(), &[""]);
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        assert!(problem.contains("more.jsonl, line 1: it has no JSON lines"), "{problem}");
        assert_eq!(codecs, 1);
    }
    for text in ["", "\n", "{\"unrelated\": 1}\n", "[1]\n", "1\n2\n"] {
        assert_eq!(find(&[&files[..], &[("more.jsonl", text)]].concat(), &[""]), (Vec::new(), 1), "{text:?}");
    }
}

#[test]
fn a_function_that_is_only_mentioned_makes_no_codec() {
    for text in [
        "start(); // decodeUplink = later",
        "/*\nfunction decodeUplink(input) {}\n*/ start();",
        "log('function decodeUplink() { }'); start();",
        "log(\"decodeUplink\"); start('decodeUplink', 1);",
        "log(`\nfunction Decoder(bytes) {\n}`);",
        "const names = ['decodeUplink', 'encodeDownlink'];",
    ] {
        let files = [("door.js", SCRIPT), ("door.test.yaml", GOOD), ("other.js", text)];
        assert_eq!(find(&files, &[""]), (Vec::new(), 1), "{text}");
    }
    for text in [
        "const quote = /['\"`]/; function decodeUplink() { return {}; }",
        "exports['decodeUplink'] = () => ({});",
        "module.exports = { 'decodeUplink': () => ({}) };",
        "Object.defineProperty(exports, 'decodeUplink', { value: () => ({}) });",
        "// it's here\nthis.decodeUplink = function () { return {}; };",
    ] {
        let files = [("door.js", SCRIPT), ("door.test.yaml", GOOD), ("other.js", text)];
        assert_eq!(find(&files, &[""]), (Vec::new(), 2), "{text}");
    }
}
