//! Tests of the coverage of a script by examples, and that every report has it.

use std::convert::Infallible;

use airlock_workbench::{self as workbench, Coverage, Detail, Engines, Format, Rules, Totals};

use crate::support::{Dir, counting_engine, engine};

/// Four lines with code, and two conditions.
const SCRIPT: &str = "function decodeUplink(input) {
  if (input.fPort === 2) {
    return { errors: ['port'] };
  }
  return { data: { high: input.bytes[0] > 9 ? 1 : 0 } };
}
function Decoder(bytes, port) {
  return decodeUplink({ bytes: bytes, fPort: port }).data;
}
";
const LOW: &str = "examples: [{ port: 1, bytes: '01', output: { data: { high: 0 } } }]";
/// The same script in another dialect: it reaches what the others do not.
const HIGH: &str = "script: codec.js\ndialect: v2\nexamples: [{ port: 1, bytes: '0a', output: { high: 1 } }]";
const REFUSED: &str = "examples: [{ port: 2, bytes: '0a', output: { errors: [port] } }]";

/// The totals of these files, and what a report says of them.
fn test(files: &[(&str, &str)], format: Format) -> (Dir, Totals, String) {
    let dir = Dir::new(files);
    let (plain, counting) = (engine(), counting_engine());
    let engines = Engines { plain: &plain, counting: Some(&counting) };
    let found = workbench::find(&[dir.path()], None, &plain);
    let mut reporter = format.reporter(Detail::Normal);
    let mut text = String::new();
    let Ok(totals) = workbench::run_on(engines, &found.codecs, Rules::default(), 2, |report| {
        text += &reporter.codec(report);
        Ok::<(), Infallible>(())
    });
    let text = text + &reporter.end(&totals, &found.problems);
    (dir, totals, text)
}

// Conformance: functions test: coverage
#[test]
fn codecs_that_share_a_script_cover_it_together() {
    let files = [("codec.js", SCRIPT), ("codec.test.yaml", LOW), ("ttn-v2.test.yaml", HIGH)];
    let (dir, totals, _) = test(&files, Format::Human);
    assert_eq!((totals.codecs, totals.passed, totals.failed), (2, 2, 0));
    let coverage = totals.coverage.unwrap();
    assert_eq!((coverage.lines_percent, coverage.branches_percent, coverage.uncounted), (75.0, 75.0, 0));
    let [script] = &coverage.scripts[..] else { panic!("{:?}", coverage.scripts) };
    assert_eq!(script.file, Some(dir.path().join("codec.js")));
    let expected = Coverage {
        lines: 4,
        lines_run: 3,
        branches: 4,
        branches_run: 3,
        missed_lines: vec![3],
        missed_branches: vec![2],
    };
    assert_eq!(script.coverage, expected);

    let alone = test(&files[..2], Format::Human).1.coverage.unwrap();
    assert_eq!((alone.lines_run, alone.branches_run), (2, 2));
    let more = format!("script: codec.js\n{REFUSED}");
    let all = [&files[..], &[("more.test.yaml", &more)]].concat();
    let all = test(&all, Format::Human).1.coverage.unwrap();
    assert_eq!((all.lines_percent, all.branches_percent), (100.0, 100.0));
}

#[test]
fn verdicts_are_the_same_as_without() {
    let files = [
        ("codec.js", SCRIPT),
        ("codec.test.yaml", "examples: [{ port: 1, bytes: '01', output: { data: { high: 9 } } }]"),
        ("broken.js", "function decodeUplink( {"),
        ("broken.test.yaml", LOW),
        ("throws.js", "function decodeUplink() {\n  throw 'always';\n}"),
        ("throws.test.yaml", "examples: [{ bytes: '', outcome: throws }]"),
    ];
    let (_, totals, text) = test(&files, Format::Human);
    assert_eq!((totals.codecs, totals.codecs_not_loaded, totals.passed, totals.failed), (3, 1, 1, 2), "{text}");
    // What cannot be loaded has no lines with code.
    let coverage = totals.coverage.unwrap();
    let lines: Vec<_> =
        coverage.scripts.iter().map(|script| (script.coverage.lines, script.coverage.lines_run)).collect();
    assert_eq!((lines, coverage.uncounted), (vec![(4, 2), (1, 1)], 0));
}

#[test]
fn every_report_tells_that_too_little_is_covered() {
    let files = [("codec.js", SCRIPT), ("codec.test.yaml", LOW)];
    let (_, totals, _) = test(&files, Format::Human);
    let with = |min| Totals { coverage_min: min, ..totals.clone() };
    assert_eq!([None, Some(0.0), Some(50.0)].map(|min| with(min).lack_of_coverage()), [None, None, None]);
    let lack = "examples reach 50.0% of lines and 50.0% of branches, less than 50.1%";
    assert_eq!(with(Some(50.1)).lack_of_coverage().as_deref(), Some(lack));
    let end = |format: Format, min| format.reporter(Detail::Normal).end(&with(min), &[]);
    for (format, parts) in [
        (Format::Json, &["\"coverage_min\":50.1"][..]),
        (Format::Junit, &["tests=\"1\" failures=\"1\"", "<testcase name=\"minimum\"><failure"]),
        (Format::Sarif, &["\"ruleId\": \"too-little-covered\"", "\"text\": \"examples reach 50.0% of lines"]),
        (Format::Github, &["::error title=Too little is tested::examples reach 50.0%25 of lines"]),
        (Format::Tap, &["not ok 1 - examples reach 50.0% of lines", "\n1..1\n"]),
        (Format::Html, &["<p class=\"verdict bad\">Too little is tested.</p>", "<p>Not enough: examples reach 50.0%"]),
        (Format::Markdown, &["### ❌ ", "- examples reach 50.0% of lines and 50.0% of branches, less than 50.1%"]),
    ] {
        let (good, bad) = (end(format, Some(50.0)), end(format, Some(50.1)));
        for part in parts {
            assert!(bad.contains(part) && !good.contains(part), "{}: {part} in {bad}", format.name());
        }
    }
}

// Conformance: functions test: coverage
#[test]
fn every_report_tells_what_is_missing() {
    let files = [("codec.js", SCRIPT), ("codec.test.yaml", LOW)];
    for (format, parts) in [
        (
            Format::Human,
            &[
                "codec.js: 50.0% of lines, 50.0% of branches\n      lines not reached: 3, 8\n      branches not taken: 2, 5\n",
                "\ncoverage: 50.0% of lines (2 of 4), 50.0% of branches (2 of 4)\n",
            ][..],
        ),
        (Format::Json, &["\"lines_percent\":50.0", "\"missed_lines\":[3,8],\"missed_branches\":[2,5]"]),
        (Format::Junit, &["<property name=\"coverage.lines\" value=\"50.0\"/>"]),
        (Format::Sarif, &["\"ruleId\": \"not-covered\"", "\"startLine\": 2", "\"level\": \"note\""]),
        (
            Format::Github,
            &["::notice file=", "codec.js,line=2,title=50.0%25 of lines", "%0Abranches not taken: 2, 5\n"],
        ),
        (Format::Tap, &["1..1\n# coverage: 50.0% of lines", "#   lines not reached: 3, 8\n"]),
        (
            Format::Html,
            &["<h2 id=\"coverage\">Coverage</h2>", "lines not reached: 3, 8; branches not taken: 2, 5</td>"],
        ),
        (Format::Markdown, &["- coverage: 50.0% of lines", "codec.js: lines not reached: 3, 8"]),
    ] {
        let (_, _, text) = test(&files, format);
        for part in parts {
            assert!(text.contains(part), "{}: {part} is not in {text}", format.name());
        }
    }
}
