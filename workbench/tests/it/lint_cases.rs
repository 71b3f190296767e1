//! Verdicts that the networks' own engines gave for small texts, each of which stands for a kind of fault.

use std::{
    convert::Infallible,
    sync::{Arc, LazyLock},
};

use airlock_workbench::{self as workbench, Level, Target, Verdict};
use runtime::Engine;

/// Verdict of a network on a text.
#[derive(Clone, Copy, Debug)]
pub enum Right {
    /// It runs, and nothing is said.
    Yes,
    /// It runs, with a warning that has these words.
    Warned(&'static str),
    /// It does not run, for a reason that has these words.
    No(&'static str),
}
pub use Right::{No, Warned, Yes};

use crate::support::{Dir, engine};

pub const CHIRPSTACK: &[Target] = &[Target::ChirpStackModule];
pub const STACK: &[Target] = &[Target::ThingsStack, Target::ThingsStackBefore335];
pub const SCRIPTS: &[Target] = &[Target::ChirpStackScript, Target::ThingsStack, Target::ThingsStackBefore335];
pub const OTTO: &[Target] = &[Target::TtnV2, Target::ChirpStack3];
/// Those whose engines are known.
pub const KNOWN: &[Target] = &[
    Target::ChirpStackScript,
    Target::ChirpStackModule,
    Target::ThingsStack,
    Target::ThingsStackBefore335,
    Target::TtnV2,
    Target::ChirpStack3,
];

/// A library as packers write it for scripts of browsers: in a module, `this` is undefined.
const UMD: &str =
    "(function (root, make) { if (typeof module === 'object') module.exports = make(); else root.lib = make(); })
(undefined, function () { return function () {}; });";

static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(engine);

/// The verdicts on a script for some networks, by the examples in a YAML file.
fn verdicts(targets: &[Target], script: &str, examples: &str) -> Vec<Verdict> {
    let dir = Dir::new(&[("codec.js", script), ("codec.test.yaml", examples)]);
    let found = workbench::find(&[dir.path()], None, &ENGINE);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let mut verdicts = Vec::new();
    let Ok(()) = workbench::lint(&ENGINE, &found.codecs, targets, 1, |report| {
        verdicts.extend(report.verdicts.clone());
        Ok::<(), Infallible>(())
    });
    verdicts
}

/// A codec for all networks, with `lines` in its decoder.
pub fn everywhere(before: &str, lines: &str) -> String {
    format!(
        "{before}\nfunction decodeUplink(input) {{ return {{ data: Decoder(input.bytes, input.fPort) }}; }}
function Decode(fPort, bytes) {{ return Decoder(bytes, fPort); }}
function Decoder(bytes, port) {{\n{lines}\n  return {{ level: bytes[0] }};\n}}\n"
    )
}

/// A decoder of TS013 that returns this.
pub fn returning(result: &str) -> String {
    format!("function decodeUplink(input) {{ return {result}; }}")
}

fn has(verdict: &Verdict, level: Level, words: &str) -> bool {
    verdict.findings.iter().any(|finding| finding.level == level && finding.message.contains(words))
}

pub fn check(targets: &[Target], script: &str, examples: &str, right: Right) {
    for verdict in &verdicts(targets, script, examples) {
        let is_right = match right {
            Yes => verdict.runs && verdict.findings.is_empty(),
            Warned(words) => verdict.runs && has(verdict, Level::Warning, words),
            No(words) => !verdict.runs && has(verdict, Level::Error, words),
        };
        assert!(is_right, "{right:?}\n{script}\n{verdict:?}");
    }
}

// Conformance: functions lint
#[test]
fn names_rules_and_built_ins_are_those_of_the_network() {
    let level = "examples: [{ port: 1, bytes: '05', output: { data: { level: 5 } } }]";
    let assign = "Object.defineProperty(Object, 'assign', { value: function (to) { return to; } });";
    let read_first = "  var n = payload.length; payload = [];";
    let old = "var r = [1], t = 'Set'; r = 'Map' === t ? Array.from(r) : r;";
    let cases: &[(&[Target], &str, &str, Right)] = &[
        (CHIRPSTACK, "function Buffer(n) { this.offset = 0; }", "  new Buffer(1);", No("no setter for property")),
        (CHIRPSTACK, "function Buffer(n) { this.parent = n; }", "  new Buffer(1);", No("no setter for property")),
        (CHIRPSTACK, "function Buffer(n) { this.size = n; }", "  new Buffer(1);", Yes),
        (CHIRPSTACK, "var Buffer = function () {};", "", No("read-only")),
        (CHIRPSTACK, "", "  Buffer = null;", No("read-only")),
        (CHIRPSTACK, "let Buffer = null;", "", Yes),
        (CHIRPSTACK, "const Buffer = null;", "", Yes),
        (CHIRPSTACK, "class Buffer {}", "  new Buffer();", Yes),
        (CHIRPSTACK, "", "  var Buffer = null;", Yes),
        (CHIRPSTACK, "", "  atob(btoa('a'));", Warned("ChirpStack 4.20")),
        (CHIRPSTACK, "", "  try { cnt++ } catch (e) {}", Yes),
        (CHIRPSTACK, "let NaN = 1;", "", Yes),
        (CHIRPSTACK, "var zero = '\0';", "", No("zero byte")),
        (&[Target::ChirpStackScript], "var zero = '\0';", "", No("zero byte")),
        (STACK, "var zero = '\0';", "", Yes),
        (SCRIPTS, "await null;", "", No("`await`")),
        (CHIRPSTACK, "await null;", "", Yes),
        (KNOWN, assign, "  Object.assign({}, {});", Yes),
        (KNOWN, "", "  if (typeof process !== \"undefined\" && process.env.X) { global.c = 1 }", Yes),
        (OTTO, old, "", Warned("`Array.from`")),
        (STACK, "", "  if (true) { function g() { return 1 } } g();", No("`g`")),
        (STACK, "const main = 1;", "", No("declares `main`")),
        (STACK, "var main = 1;", "", No("assigns `main`")),
        (STACK, "", "  main = 3;", No("assigns `main`")),
        (STACK, "function main() { return 1; }", "  main();", No("calls its own `main`")),
        (STACK, "function main() { return 1; }", "", Yes),
        (STACK, "<!-- text", "", No("`<!--`")),
        (STACK, "", "  /a./s.test('a');", No("flag `s`")),
        (STACK, "", "  [1].with(0, 2);", No("`Array.prototype.with`")),
        (STACK, "", "  new Date(0).getYear();", No("`Date.prototype.getYear`")),
        (STACK, "", "  ''.anchor('a');", No("`String.prototype.anchor`")),
        (STACK, "", "  ''.bold();", No("`String.prototype.bold`")),
        (STACK, "", "  new Set().union(new Set());", No("`Set.prototype.union`")),
        (OTTO, "", "  ''.bold();", No("`String.prototype.bold`")),
        (OTTO, "", "  Number.isNaN(1);", Yes),
        (KNOWN, "if (typeof module !== 'undefined') { module.exports = {}; require('fs'); }", "", Yes),
        (KNOWN, UMD, "  lib();", No("lib")),
        (KNOWN, "", "  new Intl.NumberFormat();", No("`Intl`")),
        (SCRIPTS, "", read_first, No("`payload`")),
        (CHIRPSTACK, "", read_first, No("`payload`")),
        (&[Target::ChirpStack3], "", read_first, No("`payload`")),
        (&[Target::TtnV2], "", read_first, Yes),
        (SCRIPTS, "", "  payload = bytes; var n = payload.length;", Yes),
        (SCRIPTS, "", "  payload = payload.slice(1);", No("`payload`")),
    ];
    for (targets, before, lines, right) in cases {
        check(targets, &everywhere(before, lines), level, *right);
    }
}

// Conformance: functions lint
#[test]
fn results_are_checked_as_the_network_checks_them() {
    let nan = "examples: [{ bytes: '05', output: { data: { t: null } } }]";
    check(STACK, &returning("{ data: { t: NaN } }"), nan, No("publishes nothing"));
    check(
        STACK,
        &returning("{ data: { t: [1, -Infinity] } }"),
        &nan.replace("null", "[1, null]"),
        No("publishes nothing"),
    );
    let text = "examples: [{ bytes: '05', output: { data: {}, errors: text } }]";
    check(STACK, &returning("{ data: {}, errors: 'text' }"), text, No("list"));
    check(STACK, &returning("{ a: 1 }"), "examples: [{ bytes: '05', output: { a: 1 } }]", Warned("no fields"));
    let throws = "function decodeUplink(input) { throw new Error('short'); }
function Decoder() { decodeUplink(); }\nfunction Decode() { decodeUplink(); }";
    check(KNOWN, throws, "examples: [{ bytes: '05', outcome: throws }]", Yes);
    let list = "function Decoder(bytes) { if (bytes[0] === 6) { throw new Error('six'); } return [bytes[0]]; }";
    let examples = "examples:\n  - { bytes: '05', output: [5] }\n  - { bytes: '06', outcome: throws }\n";
    check(&[Target::TtnV2], list, examples, No("takes an object"));
}

// Conformance: functions lint
#[test]
fn the_length_of_a_text_depends_on_the_version() {
    let (before, since) = (&[Target::ThingsStackBefore335], &[Target::ThingsStack]);
    let long = |chars: usize| {
        let own = everywhere("", "");
        own.clone() + "//" + &"x".repeat(chars - own.len() - 2)
    };
    for (chars, right_before, right_since) in [
        (40_960, Yes, Yes),
        (40_961, No("accepts 40960"), Yes),
        (65_536, No("accepts 40960"), Yes),
        (65_537, No("accepts 40960"), No("accepts 65536")),
    ] {
        check(before, &long(chars), "examples: []", right_before);
        check(since, &long(chars), "examples: []", right_since);
    }
}

#[test]
fn a_port_is_not_proved_where_the_network_refuses_the_text() {
    let dir = Dir::new(&[
        ("codec.js", &everywhere("await null;", "")),
        ("codec.test.yaml", "examples: [{ port: 1, bytes: '05', output: { data: { level: 5 } } }]"),
    ]);
    let found = workbench::find(&[dir.path()], None, &ENGINE);
    for target in SCRIPTS {
        let ported = workbench::port(&ENGINE, &found.codecs, *target);
        assert!(!ported.is_sound(), "{target:?} {ported:?}");
    }
}
