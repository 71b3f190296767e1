//! Line and column of failures: those that V8 reports, over a table of sources.

use airlock_runtime::{FailureKind, Slot};

use crate::harness::Harness;

/// Sources below a line `--- name`, each with this mark where Node 20 says that the error is.
const TABLE: &str = include_str!("positions/table.txt");
const MARK: char = '‸';

/// Returns the position of the mark: line and column from 1, the column in UTF-16 units.
fn marked(source: &str) -> (u32, u32) {
    let before = source.split(MARK).next().unwrap();
    let line = before.rsplit('\n').next().unwrap();
    (before.matches('\n').count() as u32 + 1, line.encode_utf16().count() as u32 + 1)
}

/// Describes what is wrong with the position of the failure of `source`; `None` if it is right.
fn mismatch(harness: &mut Harness, source: &str) -> Option<String> {
    let failure = harness.fail(Slot::Decoder, &source.replace(MARK, ""));
    let (line, column) = marked(source);
    let is_right = (failure.line, failure.column) == (Some(line), Some(column));
    (!is_right).then(|| format!("expected {line}:{column}, got: {failure}\n{source}"))
}

// Conformance: Errors are at the line and column that Node reports
#[test]
fn failures_are_where_v8_says_that_they_are() {
    let mut harness = Harness::new();
    let cases: Vec<_> = TABLE.split("--- ").skip(1).filter_map(|case| case.split_once('\n')).collect();
    assert!(cases.len() >= 60 && cases.iter().all(|(_, source)| source.contains(MARK)));
    let wrong: Vec<_> = cases
        .iter()
        .filter_map(|(name, source)| {
            let source = source.strip_suffix('\n').unwrap_or(source);
            mismatch(&mut harness, source).map(|mismatch| format!("{name}: {mismatch}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
}

/// V8 reports the first thing that a statement does at the start of the statement; we are more precise.
#[test]
fn failures_at_the_start_of_a_statement_are_at_their_expression() {
    let mut harness = Harness::new();
    for source in [
        "function Decoder(b) {\n  return ‸foo;\n}",
        "function Decoder(b) {\r\n\treturn ‸foo;\r\n}",
        "function Decoder(b) {\n  var s = '温度é😀'; return ‸foo;\n}",
        "function Decoder(b) {\n  var x;\n  x.‸y += 1;\n}",
        "function Decoder(b) {\n  var x;\n  x.‸y++;\n}",
        "function Decoder(b) {\n  switch (‸foo.x) {\n    case 1: break;\n  }\n}",
        "function Decoder(b) {\n  return typeof ‸foo.x;\n}",
        "var o = { get x() { return ‸foo; } };\nfunction Decoder(b) {\n  return o.x;\n}",
    ] {
        assert_eq!(mismatch(&mut harness, source), None);
    }
}

#[test]
fn values_that_are_no_errors_are_at_their_throw() {
    let mut harness = Harness::new();
    for thrown in ["'text'", "b[0]\n    + 1", "{ code: b }", "null"] {
        let source = format!("function Decoder(b) {{\n  if (b)\n    ‸throw {thrown}\n  return {{}}\n}}");
        assert_eq!(mismatch(&mut harness, &source), None);
    }
}

// Conformance: Errors are at the line and column that Node reports
#[test]
fn what_is_missing_at_the_end_is_missing_at_the_end() {
    let mut harness = Harness::new();
    for source in [
        "function Decoder(b) {‸",
        "function Decoder(b) {\n‸",
        "function Decoder(b) {\n  return [\n\n‸",
        "function Decoder(b) {\n  return `a\n  b‸",
        "var x = (1,\n‸",
    ] {
        assert_eq!(mismatch(&mut harness, source), None);
    }
}

#[test]
fn a_source_in_one_line_loads_in_linear_time() {
    // Parentheses make the parser look ahead and return; columns must not be counted from the start each time.
    let long = |count: usize| format!("function Decoder(b) {{ return [{}]; }}", "f((b[0] + 1) * 2),".repeat(count));
    let mut harness = Harness::with_limits(|limits| limits.load_fuel = 350_000_000);
    harness.load_in(Slot::Decoder, &long(10_000));
    let failure = harness.fail(Slot::Decoder, &format!("{}retrn 1;", long(2_000)));
    let column = long(2_000).len() as u32 + "retrn ".len() as u32 + 1;
    assert_eq!((failure.kind, failure.line, failure.column), (FailureKind::Syntax, Some(1), Some(column)));
}
