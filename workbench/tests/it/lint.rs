//! Rules of networks for codecs: each is obeyed and violated once.

use std::{
    convert::Infallible,
    sync::{Arc, LazyLock},
};

use airlock_workbench::{self as workbench, Finding, Level, LintFormat, LintReport, LintTotals, Rule, Target};
use runtime::Engine;

use crate::support::{Dir, engine};

/// A decoder that runs everywhere but on Datacake, which wants a list.
const EVERYWHERE: &str = "function decodeUplink(input) {
  return { data: { level: input.bytes[0] } };
}
function Decoder(bytes, port) {
  return decodeUplink({ bytes: bytes, fPort: port }).data;
}
function Decode(fPort, bytes, variables) {
  return Decoder(bytes, fPort);
}
";

const EXAMPLES: &str = "examples:
  - { description: five, port: 1, bytes: '05', output: { data: { level: 5 } } }
  - { description: six, port: 1, bytes: '06', output: { data: { level: 6 } } }
";

/// Returns the rules that a script violates on a target, with the lines.
fn violated(target: Target, script: &str) -> Vec<(Rule, Option<u32>)> {
    let report = lint(&[("codec.js", script), ("codec.test.yaml", EXAMPLES)]);
    let own: Vec<_> = report.verdicts.iter().filter(|verdict| verdict.target == target).collect();
    let verdict = own[0];
    let errors = verdict.findings.iter().filter(|finding| finding.level == Level::Error);
    let errors: Vec<_> = errors.map(|finding| (finding.rule, finding.line)).collect();
    assert_eq!(verdict.runs, errors.is_empty(), "{verdict:?}");
    errors
}

fn lint(files: &[(&str, &str)]) -> LintReport {
    let dir = Dir::new(files);
    static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(engine);
    let found = workbench::find(&[dir.path()], None, &ENGINE);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let mut reports = Vec::new();
    let Ok(()) = workbench::lint(&ENGINE, &found.codecs, &Target::ALL, 1, |report| {
        reports.push(report.clone());
        Ok::<(), Infallible>(())
    });
    assert_eq!(reports.len(), 1, "one codec");
    reports.remove(0)
}

/// A decoder with these lines from line 2 on.
fn decoder(lines: &str) -> String {
    format!("function decodeUplink(input) {{\n{lines}\n  return {{ data: {{ level: input.bytes[0] }} }};\n}}\n")
}

/// The same for The Things Network 2.
fn v2(lines: &str) -> String {
    let own = format!("function Decoder(bytes, port) {{\n{lines}\n  return {{ level: bytes[0] }};\n}}\n");
    own + "function decodeUplink(input) { return { data: Decoder(input.bytes, input.fPort) }; }"
}

#[test]
fn a_plain_codec_runs_everywhere_but_where_the_result_has_another_form() {
    let report = lint(&[("codec.js", EVERYWHERE), ("codec.test.yaml", EXAMPLES)]);
    for verdict in &report.verdicts {
        let is_datacake = verdict.target == Target::Datacake;
        assert_eq!((verdict.runs, verdict.examples), (!is_datacake, 2), "{verdict:?}");
        let rules: Vec<Rule> = verdict.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, if is_datacake { vec![Rule::WrongResult] } else { vec![] });
    }
}

// Conformance: functions lint
#[test]
fn each_rule_tells_the_line_of_what_violates_it() {
    use Rule::*;
    use Target::*;
    let long = format!("// {}\n{EVERYWHERE}", "x".repeat(66_000));
    let cases: Vec<(Target, Rule, Option<u32>, String)> = vec![
        (ChirpStackModule, UndeclaredVariable, Some(2), decoder("  total = 1;")),
        (ChirpStackModule, UndeclaredVariable, Some(3), decoder("\n  for (i = 0; i < 2; i++);")),
        (ChirpStackModule, StrictSyntax, Some(2), decoder("  var mask = 017;")),
        (ChirpStackModule, StrictSyntax, Some(3), decoder("\n  with (input) { fPort; }")),
        (ChirpStackModule, MissingGlobal, Some(2), decoder("  console.log(1);")),
        (ChirpStackModule, ModuleSyntax, Some(1), format!("import {{ Buffer }} from 'buffer';\n{EVERYWHERE}")),
        (ChirpStackModule, ModuleSyntax, Some(10), format!("{EVERYWHERE}export default 1;")),
        (ChirpStackModule, ExampleFails, Some(2), decoder("  (function () { this.level = 1; })();")),
        (ChirpStackModule, AsyncEntryPoint, Some(1), format!("async {}", decoder(""))),
        (ChirpStackModule, ReadOnly, Some(2), decoder("  Buffer = null;")),
        (ChirpStackModule, ReadOnly, Some(5), decoder("") + "var Buffer = null;"),
        (ChirpStackModule, MissingGlobal, Some(2), decoder("  new Intl.NumberFormat();")),
        (ChirpStackScript, ModuleSyntax, Some(1), format!("export {}", decoder(""))),
        (ChirpStackScript, ModuleSyntax, Some(5), decoder("") + "await null;"),
        (ThingsStack, ModuleSyntax, Some(5), decoder("") + "await null;"),
        (ThingsStack, MissingGlobal, Some(2), decoder("  if (true) { function g() { return 1; } } g();")),
        (ThingsStack, SyntaxError, Some(5), decoder("") + "const main = 1;"),
        (ThingsStack, NewerSyntax, Some(5), decoder("") + "<!-- text"),
        (ThingsStack, NewerSyntax, Some(2), decoder("  /a./s.test('a');")),
        (ThingsStack, MissingBuiltIn, Some(2), decoder("  [1].with(0, 2);")),
        (ThingsStack, MissingBuiltIn, Some(2), decoder("  new Date(0).getYear();")),
        (ThingsStack, MissingBuiltIn, Some(2), decoder("  ''.anchor('a');")),
        (ChirpStackScript, MissingGlobal, Some(2), decoder("  var text = new TextDecoder();")),
        (ChirpStackScript, MissingEntryPoint, None, "function Decoder(b) { return { level: b[0] }; }".to_owned()),
        (ThingsStack, MissingGlobal, Some(2), decoder("  var buffer = Buffer.from(input.bytes);")),
        (ThingsStack, NewerSyntax, Some(2), decoder("  var big = 10n;")),
        (ThingsStack, NewerSyntax, Some(3), decoder("  var a = null;\n  a ??= 1;")),
        (ThingsStack, MissingBuiltIn, Some(2), decoder("  input.bytes.toSorted();")),
        (ThingsStack, ModuleSyntax, Some(1), format!("export {}", decoder(""))),
        (ThingsStack, TooLong, None, long),
        (TtnV2, NewerSyntax, Some(2), v2("  const a = 1;")),
        (TtnV2, NewerSyntax, Some(3), v2("\n  var f = () => 1;")),
        (TtnV2, MissingBuiltIn, Some(2), v2("  Number.isInteger(port);")),
        (TtnV2, MissingBuiltIn, Some(2), v2("  'a'.padStart(2);")),
        (TtnV2, MissingGlobal, Some(2), v2("  var seen = new Map();")),
        (TtnV2, UnsupportedRegexp, Some(2), v2("  /a(?=b)/.test('ab');")),
        (ChirpStack3, NewerSyntax, Some(10), format!("{EVERYWHERE}let a;")),
        (ChirpStack3, MissingEntryPoint, None, decoder("")),
        (Datacake, MissingEntryPoint, None, decoder("")),
        (Actility, MissingEntryPoint, None, "function Decoder(b) { return { level: b[0] }; }".to_owned()),
    ];
    for (target, rule, line, script) in &cases {
        let found = violated(*target, script);
        assert!(found.contains(&(*rule, *line)), "{target:?} {rule:?} {line:?}: {found:?}\n{script}");
    }
    let tested: Vec<Rule> = cases.iter().map(|(_, rule, ..)| *rule).collect();
    let elsewhere = [SyntaxError, CannotLoad, ExampleDiffers, WrongResult, LocalTime];
    for (rule, _) in Rule::ALL {
        assert!(tested.contains(&rule) || elsewhere.contains(&rule), "{rule:?} has no case");
    }
}

// Conformance: functions lint
#[test]
fn what_is_guarded_replaced_or_never_called_is_no_reason() {
    let stack = Target::ThingsStack;
    let old = Target::TtnV2;
    for (target, script) in [
        (Target::ChirpStackModule, decoder("  var total = 1; total = 2;")),
        (Target::ChirpStackModule, decoder("") + "function unused() { leaked = 1; console.log(1); }"),
        (Target::ChirpStackModule, decoder("") + "if (typeof module !== 'undefined') module.exports = {};"),
        (Target::ChirpStackModule, format!("export {}", decoder(""))),
        (Target::ChirpStackModule, decoder("") + "const Buffer = null;"),
        (Target::ChirpStackModule, decoder("  try { cnt++; } catch (error) { }")),
        (Target::ChirpStackModule, decoder("  atob('YQ==');")),
        (Target::ChirpStackModule, decoder("  function Buffer() { } Buffer();")),
        (Target::ChirpStackModule, decoder("  if (typeof process !== 'undefined' && process.env.X) { global.c = 1; }")),
        (stack, decoder("  if (typeof process !== 'undefined' && process.env.X) { global.c = 1; }")),
        (stack, format!("// {}\n{EVERYWHERE}", "x".repeat(41_000))),
        (old, v2("  var t = 'Map', r = 'Map' === port ? Array.from(bytes) : t;")),
        (
            old,
            "Object.defineProperty(Object, 'assign', { value: function () { return {}; } });\n".to_owned()
                + &v2("  Object.assign({});"),
        ),
        (Target::ChirpStackScript, decoder("  total = 017;")),
        (Target::ChirpStackScript, decoder("  var buffer = Buffer.from(input.bytes);")),
        (stack, decoder("  const { fPort } = input; let a = fPort ?? 1; [...input.bytes].find((b) => b > a);")),
        (stack, decoder("  try { Buffer.from([1]); } catch (error) { }")),
        (stack, "function Decoder(bytes) { return { level: bytes[0] }; }".to_owned()),
        (old, v2("  console.log(port, payload.length);")),
        (old, v2("  leaked = 1;")),
        (old, v2("  Number.isInteger(1);") + "\nNumber.isInteger = function (n) { return n % 1 === 0; };"),
        (old, v2("  var list = { find: function () { return 1; } }; list.find();")),
    ] {
        assert_eq!(violated(target, &script), [], "{target:?}\n{script}");
    }
}

/// The level of what speaks against The Things Stack when this is returned for one example.
fn level_of(result: &str, expected: &str) -> Vec<(Rule, Level)> {
    let script = format!("function decodeUplink(input) {{ return {result}; }}");
    let examples = format!("examples: [{{ bytes: '05', output: {expected} }}]");
    let report = lint(&[("codec.js", &script), ("codec.test.yaml", &examples)]);
    let verdicts = report.verdicts.iter().filter(|verdict| verdict.target == Target::ThingsStack);
    verdicts.flat_map(|verdict| &verdict.findings).map(|finding| (finding.rule, finding.level)).collect()
}

#[test]
fn results_are_decoded_as_the_network_decodes_them() {
    let (error, warning) = ([(Rule::WrongResult, Level::Error)], [(Rule::WrongResult, Level::Warning)]);
    assert_eq!(level_of("{ data: { t: NaN } }", "{ data: { t: null } }"), error);
    assert_eq!(level_of("{ data: {}, errors: 'text' }", "{ data: {}, errors: text }"), error);
    assert_eq!(level_of("{ data: {}, warnings: 'text' }", "{ data: {}, warnings: text }"), error);
    assert_eq!(level_of("{ data: {}, warnings: [1] }", "{ data: {}, warnings: [1] }"), [], "it makes a text of 1");
    assert_eq!(level_of("{ data: 'text' }", "{ data: text }"), error);
    assert_eq!(level_of("undefined", "undefined").len(), 0);
    assert_eq!(level_of("{ a: 1 }", "{ a: 1 }"), warning);
    assert_eq!(level_of("{ errors: ['text'] }", "{ errors: [text] }"), []);
    assert_eq!(level_of("{ data: { t: 1 }, warnings: ['text'] }", "{ data: { t: 1 }, warnings: [text] }"), []);
}

#[test]
fn an_example_that_is_to_throw_is_no_reason() {
    let throws = "function decodeUplink(input) { throw new Error('short'); }";
    let report = lint(&[("codec.js", throws), ("codec.test.yaml", "examples: [{ bytes: '05', outcome: throws }]")]);
    for verdict in &report.verdicts {
        let rules = verdict.findings.iter().map(|finding| finding.rule);
        assert_eq!(rules.filter(|rule| *rule == Rule::ExampleFails).count(), 0, "{verdict:?}");
    }
}

#[test]
fn a_list_in_place_of_fields_is_wrong_also_where_another_example_throws() {
    let script = "function Decoder(bytes) { if (bytes[0] === 6) { throw new Error('six'); } return [bytes[0]]; }";
    let examples = "examples:\n  - { bytes: '05', output: [5] }\n  - { bytes: '06', outcome: throws }\n";
    let report = lint(&[("codec.js", script), ("codec.test.yaml", examples)]);
    let verdict = report.verdicts.iter().find(|verdict| verdict.target == Target::TtnV2).unwrap();
    assert_eq!((verdict.runs, verdict.findings[0].rule), (false, Rule::WrongResult), "{verdict:?}");
}

// Conformance: functions lint
#[test]
fn what_depends_on_the_zone_of_the_server_is_a_warning_everywhere() {
    for (name, line) in [
        ("getHours", "  var hour = new Date(0).getHours();"),
        ("setMinutes", "  var time = new Date(0); time.setMinutes(1);"),
        ("toLocaleString", "  var text = new Date(0).toLocaleString();"),
        ("new Date", "  var time = new Date(2026, 0, 1);"),
    ] {
        let report = lint(&[("codec.js", &decoder(line)), ("codec.test.yaml", EXAMPLES)]);
        for verdict in report.verdicts {
            let found = verdict.findings.iter().find(|finding| finding.rule == Rule::LocalTime).unwrap();
            let told = (found.level, found.line, found.name.as_deref());
            assert_eq!(told, (Level::Warning, Some(2), Some(name)), "{found:?}");
        }
    }
    for line in [
        "  var hour = new Date(0).getUTCHours(), again = new Date(Date.UTC(2026, 0, 1));",
        "  var clock = { getHours: function () { return 1; } }, hour = clock.getHours();",
        "  var hours = input.getHours, text = '.getHours()';",
        "  function Date(year, month) { this.year = year; } new Date(2026, 1);",
    ] {
        let report = lint(&[("codec.js", &decoder(line)), ("codec.test.yaml", EXAMPLES)]);
        let mut all = report.verdicts.iter().flat_map(|verdict| &verdict.findings);
        assert!(all.all(|finding| finding.rule != Rule::LocalTime), "{line}: {report:?}");
    }
}

#[test]
fn examples_that_fail_here_too_say_nothing_about_a_target() {
    let wrong = EXAMPLES.replace("level: 5", "level: 99");
    let report = lint(&[("codec.js", EVERYWHERE), ("codec.test.yaml", &wrong)]);
    let verdict = &report.verdicts[0];
    assert_eq!((verdict.runs, verdict.examples, report.examples), (true, 1, 2));
    assert_eq!(report.examples_failed, 1);
    let texts = |report: &LintReport, format: LintFormat| {
        let mut reporter = format.reporter();
        reporter.codec(report) + &reporter.end(&LintTotals::default(), &[])
    };
    assert!(
        texts(&report, LintFormat::Human).contains("2 examples, of which 1 says nothing, because it fails here, too")
    );
    let only = "examples: [{ port: 1, bytes: '05', output: { data: { level: 99 } } }]";
    let report = lint(&[("codec.js", EVERYWHERE), ("codec.test.yaml", only)]);
    for (format, words) in [
        (LintFormat::Human, "1 example, which fails here, too: judged by its text (`airlock functions test` says why)"),
        (LintFormat::Json, "\"examples_failed\":1"),
        (LintFormat::Markdown, "1 of 1 examples fail everywhere"),
        (LintFormat::Github, "1 of 1 examples fail everywhere"),
    ] {
        let text = texts(&report, format);
        assert!(text.contains(words), "{} lacks {words}: {text}", format.name());
    }
}

#[test]
fn a_codec_without_examples_is_judged_by_its_text() {
    let report = lint(&[("codec.js", "function decodeUplink(i) { return { data: { a: x = 1 } }; }")].map(own).concat());
    let verdict = |target| report.verdicts.iter().find(|verdict| verdict.target == target).unwrap();
    assert_eq!((report.examples, verdict(Target::ChirpStackScript).runs), (0, true));
    assert_eq!(verdict(Target::ChirpStackModule).findings[0].rule, Rule::UndeclaredVariable);
}

/// A file, with a list of no examples beside it.
fn own(script: (&'static str, &'static str)) -> Vec<(&'static str, &'static str)> {
    vec![script, ("codec.test.yaml", "examples: []")]
}

#[test]
fn other_results_of_the_authors_own_functions_are_a_warning() {
    let script = "function decodeUplink(i) { return { data: { level: i.bytes[0] } }; }
function Decoder(b) { return { raw: b[0] }; }
function Decode(p, b) { return { level: b[0] }; }";
    let older = "dialect: chirpstack3\n".to_owned()
        + &EXAMPLES.replace("{ data: { level: 5 } }", "{ level: 5 }").replace("{ data: { level: 6 } }", "{ level: 6 }");
    for (examples, target) in [(EXAMPLES, Target::TtnV2), (&older, Target::TtnV2)] {
        let report = lint(&[("codec.js", script), ("codec.test.yaml", examples)]);
        let verdict = report.verdicts.iter().find(|verdict| verdict.target == target).unwrap();
        let [finding] = &verdict.findings[..] else { panic!("{verdict:?}") };
        assert_eq!((finding.rule, finding.level, verdict.runs), (Rule::ExampleDiffers, Level::Warning, true));
    }
    let changed = script.replace("{ data: { level", "{ data: { height");
    let report = lint(&[("codec.js", &changed), ("codec.test.yaml", &older)]);
    let stack = report.verdicts.iter().find(|verdict| verdict.target == Target::ThingsStack).unwrap();
    assert_eq!((stack.runs, stack.findings[0].level), (true, Level::Warning));
}

#[test]
fn a_text_that_is_no_javascript_runs_nowhere() {
    let report = lint(&[("codec.js", "function decodeUplink( {\n"), ("codec.test.yaml", EXAMPLES)]);
    for verdict in &report.verdicts {
        assert_eq!((verdict.runs, verdict.findings[0].rule), (false, Rule::CannotLoad));
    }
}

#[test]
fn deep_texts_end_neither_the_parser_nor_the_run() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    for text in [
        format!("var a = {open}{close};"),
        format!("var a = {}1;", "!".repeat(100_000)),
        format!("var a = 1{};", "+1".repeat(100_000)),
        format!("var a = 1{};", "**1".repeat(100_000)),
        format!("if (0) {{}}{}", " else if (1) {}".repeat(10_000)),
        format!("var a = x{};", ".y".repeat(50_000)),
        format!("var a = {}1;", "a ? 1 : ".repeat(20_000)),
    ] {
        let script = format!("{text}\n{EVERYWHERE}");
        let report = lint(&[("codec.js", &script), ("codec.test.yaml", EXAMPLES)]);
        assert_eq!(report.verdicts.len(), Target::ALL.len());
    }
}

#[test]
fn each_format_has_the_rule_the_line_and_the_target() {
    let report = lint(&[("codec.js", &decoder("  total = 1;")), ("codec.test.yaml", EXAMPLES)]);
    let mut totals = LintTotals::default();
    totals.add(&report);
    for format in LintFormat::ALL {
        let mut reporter = format.reporter();
        let text = reporter.codec(&report) + &reporter.end(&totals, &[]);
        for part in ["undeclared-variable", "chirpstack-4.17", "2"] {
            assert!(text.contains(part), "{} lacks {part}: {text}", format.name());
        }
        let is_json = format == LintFormat::Sarif;
        assert!(!is_json || serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
    let own: Vec<&Finding> = report.verdicts.iter().flat_map(|verdict| &verdict.findings).collect();
    assert!(own.iter().all(|finding| !finding.message.contains('\n')), "{own:?}");
}
