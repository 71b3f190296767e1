//! Ports of codecs: what is mended, and that the examples prove it.

use airlock_workbench::{self as workbench, Ported, Rule, Target};

use crate::support::{Dir, engine};

const TS013: &str = "function decodeUplink(input) {
  if (input.bytes.length === 0) return { errors: ['empty'] };
  return { data: { level: input.bytes[0], port: input.fPort } };
}
function encodeDownlink(input) {
  return { bytes: [input.data.minutes], fPort: 4 };
}
";

const TS013_EXAMPLES: &str = "examples:
  - { description: five, port: 2, bytes: '05', output: { data: { level: 5, port: 2 } } }
  - { description: empty, port: 2, bytes: '', output: { errors: [empty] } }
  - { function: downlink-encode, input: { data: { minutes: 7 } }, output: { bytes: [7], fPort: 4 } }
";

const V2_EXAMPLES: &str = "examples:
  - { description: five, port: 2, bytes: '05', output: { level: 5, port: 2 } }
  - { function: downlink-encode, port: 3, input: { minutes: 7 }, output: [7, 3] }
";

fn port(script: &str, examples: &str, target: Target) -> Ported {
    let dir = Dir::new(&[("codec.js", script), ("codec.test.yaml", examples)]);
    let engine = engine();
    let found = workbench::find(&[dir.path().join("codec.js")], None, &engine);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    workbench::port(&engine, &found.codecs, target)
}

/// Ports a script, and checks that it has `compared` examples and that all of them agree.
fn sound(script: &str, examples: &str, target: Target, compared: usize) -> Ported {
    let ported = port(script, examples, target);
    assert!(ported.is_sound(), "{ported:#?}\n{}", ported.text);
    assert_eq!(ported.compared, compared, "{target:?}\n{}", ported.text);
    ported
}

#[test]
fn the_functions_that_a_network_calls_are_added() {
    // The example with errors says nothing about dialects that have none.
    for (target, name) in [(Target::TtnV2, "Decoder"), (Target::ChirpStack3, "Decode")] {
        let ported = sound(TS013, TS013_EXAMPLES, target, 2);
        assert!(
            ported.text.contains(&format!("function {name}(")) && ported.text.starts_with(TS013),
            "{}",
            ported.text
        );
    }
    let v2 = "function Decoder(bytes, port) { return { level: bytes[0], port: port }; }
function Encoder(object, port) { return [object.minutes, port]; }";
    for target in [Target::ChirpStackScript, Target::ChirpStackModule, Target::Actility] {
        let ported = sound(v2, V2_EXAMPLES, target, 2);
        assert!(ported.text.contains("function decodeUplink(input)"), "{}", ported.text);
    }
    let ported = sound(v2, V2_EXAMPLES, Target::ChirpStack3, 2);
    assert!(ported.text.contains("return Decoder(bytes, fPort);"), "{}", ported.text);
    // The Things Stack calls it as it is.
    let ported = sound(v2, V2_EXAMPLES, Target::ThingsStack, 2);
    assert_eq!((ported.text.as_str(), ported.changes), (v2, vec![]));
}

#[test]
fn line_endings_stay_as_they_are() {
    let ported = sound(&TS013.replace('\n', "\r\n"), TS013_EXAMPLES, Target::TtnV2, 2);
    let (with_return, all) = (ported.text.matches("\r\n").count(), ported.text.matches('\n').count());
    assert!(with_return == all && all > TS013.lines().count(), "{:?}", ported.text);
    let ported = sound(TS013, TS013_EXAMPLES, Target::TtnV2, 2);
    assert!(!ported.text.contains('\r'), "{:?}", ported.text);
}

#[test]
fn sloppy_code_becomes_a_strict_module() {
    let sloppy = TS013.replace("  return { data", "  mask = 017;\n  for (i = 0; i < 2; i++);\n  return { data");
    let ported = sound(&sloppy, TS013_EXAMPLES, Target::ChirpStackModule, 3);
    assert!(ported.text.starts_with("var mask, i;\n") && ported.text.contains("mask = 15;"), "{}", ported.text);
    assert_eq!(ported.changes.len(), 2, "{:?}", ported.changes);
}

#[test]
fn globals_that_v2_sets_are_set_by_the_wrapper() {
    let v2 = "function Decoder(bytes) { return { level: payload[0], port: port }; }";
    let examples = "examples:\n  - { port: 2, bytes: '05', output: { level: 5, port: 2 } }\n";
    let ported = sound(v2, examples, Target::ChirpStackModule, 1);
    assert!(ported.text.contains("port = input.fPort;"), "{}", ported.text);
}

#[test]
fn exports_and_imports_go() {
    let module = format!("import {{ Buffer }} from 'buffer';\nexport {TS013}export {{ encodeDownlink }};");
    let ported = sound(&module, TS013_EXAMPLES, Target::ChirpStackScript, 3);
    assert!(!ported.text.contains("import") && !ported.text.contains("export"), "{}", ported.text);
    let named = "export { decode as decodeUplink };\nfunction decode(input) { return { data: { level: input.bytes[0], port: input.fPort } }; }";
    let examples = "examples:\n  - { port: 2, bytes: '05', output: { data: { level: 5, port: 2 } } }\n";
    sound(named, examples, Target::ThingsStack, 1);
    let common = format!("{TS013}exports.decodeUplink = decodeUplink;\nmodule.exports = {{}};");
    for target in [Target::ThingsStack, Target::ChirpStackModule] {
        let ported = sound(&common, TS013_EXAMPLES, target, 3);
        assert!(ported.text.contains("if (typeof exports !== \"undefined\") exports.decodeUplink"), "{}", ported.text);
    }
    let only =
        "exports.decodeUplink = function (input) { return { data: { level: input.bytes[0], port: input.fPort } }; };";
    let ported = sound(only, examples, Target::ThingsStack, 1);
    assert!(ported.text.starts_with("var decodeUplink = function"), "{}", ported.text);
}

#[test]
fn what_logs_goes_on_without_a_console() {
    let logs = TS013.replace("  return { data", "  console.log(input);\n  return { data");
    let ported = sound(&logs, TS013_EXAMPLES, Target::ThingsStack, 3);
    assert!(ported.text.starts_with("var console = "), "{}", ported.text);
}

#[test]
fn newer_syntax_is_told_and_not_rewritten() {
    let newer = TS013.replace("  if (", "  const now = 1;\n  if (");
    let ported = port(&newer, TS013_EXAMPLES, Target::TtnV2);
    let obstacles: Vec<_> = ported.obstacles.iter().map(|finding| (finding.rule, finding.line)).collect();
    assert_eq!((obstacles, ported.is_sound()), (vec![(Rule::NewerSyntax, Some(2))], false));
}

// Conformance: functions port
#[test]
fn an_example_that_differs_is_no_proof() {
    // Strict code has no `this` here.
    let sloppy = TS013.replace("input.bytes[0]", "this === undefined ? 0 : input.bytes[0]");
    let ported = port(&sloppy, TS013_EXAMPLES, Target::ChirpStackModule);
    assert!(!ported.is_sound() && ported.agreed < ported.compared, "{ported:?}");
}

#[test]
fn what_an_example_states_wrongly_is_compared_with_what_the_original_returns() {
    let examples = TS013_EXAMPLES.replace("level: 5", "level: 99");
    sound(TS013, &examples, Target::ChirpStackModule, 3);
}

#[test]
fn a_payload_for_which_a_codec_returns_nothing_is_no_difference() {
    let empty = TS013.replace("{ errors: ['empty'] }", "{}");
    let examples = TS013_EXAMPLES.replace("{ errors: [empty] }", "{}");
    sound(&empty, &examples, Target::ChirpStackModule, 3);
}

#[test]
fn many_variables_are_declared() {
    let many: String = (0..50).map(|number| format!("  v{number} = {number};\n")).collect();
    let sloppy = TS013.replace("  return { data", &format!("{many}  return {{ data"));
    sound(&sloppy, TS013_EXAMPLES, Target::ChirpStackModule, 3);
}

#[test]
fn without_examples_nothing_is_proved() {
    let ported = port(TS013, "examples: []", Target::TtnV2);
    assert_eq!((ported.is_sound(), ported.examples, ported.compared), (true, 0, 0));
}

#[test]
fn datacake_is_refused_with_the_reason() {
    let ported = port(TS013, TS013_EXAMPLES, Target::Datacake);
    assert!(!ported.is_sound() && ported.text.is_empty(), "{ported:?}");
}
