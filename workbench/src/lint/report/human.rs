//! The report for a terminal: a block for each codec, then the matrix as totals.

use std::fmt::Write as _;

use runtime::sanitize;

use super::{LintReporter, LintTotals};
use crate::{
    layout::BadInput,
    lint::{LintReport, Verdict, finding::Finding},
    report::counted,
};

pub(super) struct Human;

impl LintReporter for Human {
    fn codec(&mut self, report: &LintReport) -> String {
        let mut text = format!("{}  {}\n", sanitize(&report.id), evidence(report));
        report.verdicts.iter().for_each(|verdict| push(&mut text, report, verdict));
        text
    }

    fn end(&mut self, totals: &LintTotals, _: &[BadInput]) -> String {
        let mut text = String::new();
        if totals.codecs > 1 {
            _ = writeln!(text, "\n{:<17} {:>5} {:>5}  why not", "target", "yes", "no");
        }
        for (target, sums) in totals.targets.iter().filter(|_| totals.codecs > 1) {
            let mut rules: Vec<_> = sums.rules.iter().collect();
            rules.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            let rules: Vec<String> =
                rules.into_iter().take(3).map(|(rule, count)| format!("{} {count}", rule.name())).collect();
            let line = format!("{:<17} {:>5} {:>5}  {}", target.name(), sums.runs, sums.fails, rules.join(", "));
            _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

fn evidence(report: &LintReport) -> String {
    let examples = counted(report.examples, "example");
    let failed = match (report.examples, report.examples_failed) {
        (0, _) => return "no examples: judged by its text".to_owned(),
        (_, 0) => return examples,
        (1, _) => "which fails here, too: judged by its text".to_owned(),
        (all, failed) if all == failed => "which fail here, too: judged by its text".to_owned(),
        (_, 1) => "of which 1 says nothing, because it fails here, too".to_owned(),
        (_, failed) => format!("of which {failed} say nothing, because they fail here, too"),
    };
    format!("{examples}, {failed} (`airlock functions test` says why)")
}

fn push(text: &mut String, report: &LintReport, verdict: &Verdict) {
    let (word, name) = (if verdict.runs { "yes" } else { "no" }, verdict.target.name());
    let evidence = match (verdict.examples, report.examples) {
        (_, 0) => String::new(),
        (0, _) => "by its text".to_owned(),
        (ran, all) => format!("{ran} of {all} examples run"),
    };
    _ = writeln!(text, "{}", format!("  {word:<3}  {name:<17}  {evidence}").trim_end());
    verdict.findings.iter().for_each(|finding| _ = writeln!(text, "       {}", line(finding)));
}

fn line(finding: &Finding) -> String {
    let warning = if finding.is_error() { "" } else { "warning: " };
    let line = finding.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    format!("{line}{warning}{} ({})", sanitize(&finding.message), finding.rule.name())
}
