//! Texts before and after an update.

use serde_json::{Value, json};

use super::edit::{Update, edit};
use crate::{
    codec::compare::settled::Settled,
    text::{
        place::{Expectation, Notation, Step},
        surrogates::mark,
    },
};

fn changed(text: &str, notation: Notation, changes: &[(&[Step], &str)], hex: bool) -> String {
    let updates: Vec<Update> = changes
        .iter()
        .map(|(path, result)| Update {
            line: 2,
            expectation: Expectation { notation, path: path.to_vec(), hex },
            settled: Settled { old: None, new: serde_json::from_str(&mark(result)).unwrap() },
        })
        .collect();
    let edited = edit(text, &updates);
    let refused: Vec<_> = edited.refused.iter().map(|(_, reason)| reason.as_str()).collect();
    match edited.count {
        0 => format!("refused: {}", refused.join("; ")),
        _ => edited.text,
    }
}

fn expected(index: usize) -> [Step; 2] {
    [Step::Index(index), Step::name("expected")]
}

fn json(text: &str, index: usize, result: &str, hex: bool) -> String {
    changed(text, Notation::Json, &[(&expected(index), result)], hex)
}

#[test]
fn json_keeps_what_stands_around() {
    let text =
        "[\n  // comment\n  {\"a\": 0x0a, \"expected\": {\n    \"b\": 1 // why\n  }},\n  {\"expected\": [1]}, {}\n]";
    let new = json(text, 0, r#"{"b":{"c":"\ud800"}}"#, false);
    assert!(new.contains("\"expected\": {\n    \"b\": {\n      \"c\": \"\\ud800\"\n    }\n  }},\n"), "{new}");
    let new = json(text, 1, r#"{"bytes":[1,171]}"#, true);
    assert!(new.contains("{\"expected\": {\"bytes\":\"01ab\"}}, {}"), "{new}");
    let new = json(text, 2, "7", false);
    assert!(new.ends_with("{ \"expected\": 7}\n]"), "{new}");
}

#[test]
fn a_new_member_stands_before_comments() {
    for (text, new) in [
        ("[{\"input\": {} // payload\n}]", "[{\"input\": {}, \"expected\": 7 // payload\n}]"),
        ("[{\"input\": 1, /* a } */ }]", "[{\"input\": 1, \"expected\": 7, /* a } */ }]"),
        ("[{ // nothing\n}]", "[{ \"expected\": 7 // nothing\n}]"),
        ("\u{feff}[{\"input\": 1}]", "\u{feff}[{\"input\": 1, \"expected\": 7}]"),
    ] {
        assert_eq!(json(text, 0, "7", false), new);
    }
    for text in ["[{\"input\": 1, ...rest}]", "[{[\"input\"]: 1}]", "[7]", "[]"] {
        assert!(json(text, 0, "7", false).starts_with("refused: "), "{text}");
    }
}

#[test]
fn of_a_member_that_is_written_twice_the_last_one_counts() {
    let text = r#"[{"expected": 1, "expected": 2}]"#;
    assert_eq!(json(text, 0, "7", false), r#"[{"expected": 1, "expected": 7}]"#);
    // Its name is not found, and the new one counts because it stands behind it.
    let text = r#"[{"\u0065xpected": 1}]"#;
    assert_eq!(json(text, 0, "7", false), r#"[{"\u0065xpected": 1, "expected": 7}]"#);
}

#[test]
fn lines_are_changed_one_by_one() {
    let text = "{\"examples\": [{}]}\n{\"examples\": [{\"port\": 1, \"expected\": {}}]}\n";
    let path = [Step::name("examples"), Step::Index(0), Step::name("expected")];
    let new = changed(text, Notation::JsonLine, &[(&path, "[1]")], false);
    assert_eq!(new, "{\"examples\": [{}]}\n{\"examples\": [{\"port\": 1, \"expected\": [1]}]}\n");
    let gone = changed("{}", Notation::JsonLine, &[(&path, "[1]")], false);
    assert_eq!(gone, "refused: the line is gone");
}

fn output(index: usize) -> [Step; 3] {
    [Step::name("examples"), Step::Index(index), Step::name("output")]
}

fn yaml(text: &str, index: usize, result: &str) -> String {
    changed(text, Notation::Yaml, &[(&output(index), result)], false)
}

#[test]
fn keeps_comments() {
    let text = "examples:\n  # first\n  - bytes: 01\n    output:\n      data:\n        a: 1 # old\n\n  # second\n  \
                - output: {a: 1} # kept\n  - bytes: 02 # last\n";
    let new = yaml(text, 0, r#"{"data":{"a":2,"b":["x: y",1]}}"#);
    let expected = "    output:\n      data:\n        a: 2 # old\n        b: [\"x: y\", 1]";
    assert!(new.contains(expected) && new.contains("\n\n  # second\n"), "{new}");
    assert_eq!(yaml(text, 0, r#"{"data":{"a":[2]}}"#), text.replace("a: 1 # old", "a: [2] # old"));
    let new = yaml(text, 1, r#"{"a":null}"#);
    assert!(new.contains("  - output: {a: null} # kept\n"), "{new}");
    let new = yaml(text, 2, r#"{"a":true}"#);
    assert!(new.contains("  - bytes: 02 # last\n    output: {a: true}\n"), "{new}");
}

#[test]
fn an_example_may_end_with_any_value() {
    for end in [
        "description: |\n      two\n      lines",
        "description: >-\n      two\n\n      lines",
        "variables:",
        "description: 'it''s' # why",
        "description: \"\\\"#\"",
        "description: é",
        "variables: {}   # none",
    ] {
        let text = format!("examples:\n  - bytes: \"07\"\n    {end}\n  # next\n  - bytes: \"08\"\n");
        let new =
            format!("examples:\n  - bytes: \"07\"\n    {end}\n    output: {{v: 7}}\n  # next\n  - bytes: \"08\"\n");
        assert_eq!(yaml(&text, 0, r#"{"v":7}"#), new);
        assert_eq!(yaml(&format!("examples:\n  - {end}"), 0, "[]"), format!("examples:\n  - {end}\n    output: []"));
    }
}

#[test]
fn any_value_can_be_replaced() {
    for (old, new) in [
        ("", " 7"),
        ("   # c", " 7   # c"),
        (" ~", " 7"),
        (" \"q\"   # c", " 7   # c"),
        (" 'it''s # no' # c", " 7 # c"),
        (" \"\\\" # no\"\t# c", " 7\t# c"),
        (" !!str 1 # c", " 7 # c"),
        (" |\n      text\n\n      more\n", " 7\n"),
        (" >-\n      text # no", " 7"),
        (" [1, 2] # c", " 7 # c"),
        (" &unused 1", " 7"),
    ] {
        let text = |old| format!("examples:\n  - bytes: 01\n    output:{old}\n  # next\n  - bytes: 02\n");
        assert_eq!(yaml(&text(old), 0, "7"), text(new), "{old}");
    }
    assert_eq!(yaml("examples: [{output: , a: 1}]", 0, "{\"v\":7}"), "examples: [{output: {v: 7} , a: 1}]");
}

#[test]
fn an_example_in_one_line_gets_its_output_there() {
    for (before, after) in [
        ("- { bytes: \"03\" }", "- { bytes: \"03\", output: {v: 7} }"),
        ("- {bytes: 03,} # c", "- {bytes: 03, output: {v: 7},} # c"),
        (
            "- { bytes: [1, 2], # two\n    port: 1 # one\n    }",
            "- { bytes: [1, 2], # two\n    port: 1, output: {v: 7} # one\n    }",
        ),
        ("- {}", "- {output: {v: 7}}"),
    ] {
        let text = |example| format!("examples:\n  {example}\n  - bytes: 02\n");
        assert_eq!(yaml(&text(before), 0, "{\"v\":7}"), text(after), "{before}");
    }
}

#[test]
fn what_would_change_something_else_is_refused() {
    for text in [
        "examples:\n  - output: &o {n: 1}\n  - output: *o\n",
        "examples:\n  - output: &o\n  - output: *o\n",
        "examples:\n  - output: &o\n      n: 1\n  - output: *o\n",
        "examples:\n  - &e\n    output: {n: 1}\n  - *e\n",
        "examples:\n  - description: |+\n      text\n\n  - output: 1\n",
        "examples:\n  - &e {bytes: 01}\n  - *e\n",
    ] {
        assert!(yaml(text, 0, r#"{"v":7}"#).starts_with("refused: "), "{text}");
    }
    assert!(yaml("examples:\n  - output: 1\n", 0, r#""\ud800""#).starts_with("refused: "));
    let alias = "examples:\n  - output: &o {n: 1}\n  - output: *o\n";
    assert_eq!(yaml(alias, 1, r#"{"v":7}"#), alias.replace("*o", "{v: 7}"));
}

#[test]
fn one_that_is_refused_does_not_keep_others_from_being_written() {
    let text =
        "examples:\n  - output: &o {n: 1}\n  - output: *o\n  - output: 2\n  - &e {bytes: 01}\n  - output: 3\n  - *e\n";
    let paths = [0, 2, 3, 4].map(output);
    let changes: Vec<(&[Step], &str)> = paths.iter().map(|path| (path.as_slice(), "7")).collect();
    let new = changed(text, Notation::Yaml, &changes, false);
    assert_eq!(new, text.replace("output: 2", "output: 7").replace("output: 3", "output: 7"));
}

/// `text`, whose expectation of one example was `old` and is to be `new`.
fn settled(text: &str, notation: Notation, old: Value, new: Value) -> String {
    let path = vec![Step::Index(0), Step::name("output")];
    let expectation = Expectation { notation, path, hex: false };
    let edited = edit(text, &[Update { line: 1, expectation, settled: Settled { old: Some(old), new } }]);
    match edited.refused.first() {
        Some((_, reason)) => format!("refused: {reason}"),
        None => edited.text,
    }
}

#[test]
fn only_what_differs_is_written_in_json() {
    for (text, old, new, expected) in [
        (
            "[{\"output\": {\n    \"a\": 1.50,\n    \"b\": {\"c\": \"x\", \"d\": [1, 2]}\n}}]",
            json!({"a": 1.5, "b": {"c": "x", "d": [1, 2]}}),
            json!({"a": 1.5, "b": {"c": "y", "d": [1, 3, 4]}}),
            "[{\"output\": {\n    \"a\": 1.50,\n    \"b\": {\"c\": \"y\", \"d\": [1, 3, 4]}\n}}]",
        ),
        (
            "[{ output: {\n\ta: 0x0a, // ten\n\tb: 'x', // text\n\tc: 3 // last\n} }]",
            json!({"a": 10, "b": "x", "c": 3}),
            json!({"a": 10, "b": "y", "c": 3}),
            "[{ output: {\n\ta: 0x0a, // ten\n\tb: \"y\", // text\n\tc: 3 // last\n} }]",
        ),
        (
            "[{\"output\": {\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}}]",
            json!({"a": 1, "b": 2, "c": 3}),
            json!({"a": 1, "c": 4, "d": {"e": 5}}),
            "[{\"output\": {\n  \"a\": 1,\n  \"c\": 4,\n  \"d\": {\n    \"e\": 5\n  }\n}}]",
        ),
        (
            "[{\"output\": {\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}}]",
            json!({"a": 1, "b": 2, "c": 3}),
            json!({"a": 1}),
            "[{\"output\": {\n  \"a\": 1\n}}]",
        ),
        (
            "[{\"output\":{\"a\":1,\"b\":[1,2,3]}}]",
            json!({"a": 1, "b": [1, 2, 3]}),
            json!({"a": 1, "b": [1], "c": 2}),
            "[{\"output\":{\"a\":1,\"b\":[1],\"c\":2}}]",
        ),
        (
            "[{\"output\": {\"a\": 1, \"b\": 2}}]",
            json!({"a": 1, "b": 2}),
            json!({"b": 2}),
            "[{\"output\": { \"b\": 2}}]",
        ),
        (
            "[{\"output\": {\"a\": 1, \"b\": 2}}]",
            json!({"a": 1, "b": 2}),
            json!({"b": 2, "a": 1}),
            "[{\"output\": {\"b\":2,\"a\":1}}]",
        ),
        ("[{\"output\": {\"a\": 1}}]", json!({"a": 1}), json!({"b": 2}), "[{\"output\": {\"b\":2}}]"),
    ] {
        assert_eq!(settled(text, Notation::Json, old, new), expected, "{text}");
    }
}

#[test]
fn members_come_and_go_where_they_stand_in_yaml() {
    for (text, old, new, expected) in [
        (
            "- output:\n    a: 1 # one\n    b: 2 # two\n    c: 3 # three\n  # end\n",
            json!({"a": 1, "b": 2, "c": 3}),
            json!({"a": 1, "c": 4, "d": {"e": [5]}}),
            "- output:\n    a: 1 # one\n    c: 4 # three\n    d:\n      e: [5]\n  # end\n",
        ),
        (
            "- output:\n    a: 1 # one\n    b:\n      - 2\n",
            json!({"a": 1, "b": [2]}),
            json!({"a": 1}),
            "- output:\n    a: 1 # one\n",
        ),
        (
            "- output: {a: 1, b: 2} # c\n",
            json!({"a": 1, "b": 2}),
            json!({"a": 1, "b": 2, "c": 3}),
            "- output: {a: 1, b: 2, c: 3} # c\n",
        ),
        ("- output: {a: 1, b: 2} # c\n", json!({"a": 1, "b": 2}), json!({"b": 2}), "- output: {b: 2} # c\n"),
    ] {
        assert_eq!(settled(text, Notation::Yaml, old, new), expected, "{text}");
    }
}
