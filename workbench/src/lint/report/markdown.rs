//! The matrix of codecs and networks for pull requests, then the reasons.

use std::fmt::Write as _;

use super::{LintReporter, LintTotals, by_finding, names};
use crate::{layout::BadInput, lint::LintReport, report::format::markdown::cell};

/// Maximum length of all rows, and of all reasons, in bytes: GitHub takes a summary of 1 MiB.
const BYTES_MAX: usize = 400_000;

#[derive(Default)]
pub(super) struct Markdown {
    head: String,
    rows: String,
    reasons: String,
}

impl LintReporter for Markdown {
    fn codec(&mut self, report: &LintReport) -> String {
        if self.head.is_empty() {
            let targets: Vec<&str> = report.verdicts.iter().map(|verdict| verdict.target.name()).collect();
            self.head = format!("| codec | {} |\n|---|{}\n", targets.join(" | "), ":-:|".repeat(targets.len()));
        }
        let verdicts: Vec<&str> =
            report.verdicts.iter().map(|verdict| if verdict.runs { "yes" } else { "**no**" }).collect();
        let note = match (report.examples, report.examples_failed) {
            (0, _) => " (no examples)".to_owned(),
            (_, 0) => String::new(),
            (all, failed) => format!(" ({failed} of {all} examples fail everywhere)"),
        };
        if self.rows.len() < BYTES_MAX {
            _ = writeln!(self.rows, "| {}{note} | {} |", cell(&report.id), verdicts.join(" | "));
        }
        for (finding, targets) in by_finding(report) {
            let line = finding.line.map(|line| format!(", line {line}")).unwrap_or_default();
            let (id, message) = (cell(&report.id), cell(&finding.message));
            if self.reasons.len() < BYTES_MAX {
                let (rule, targets) = (finding.rule.name(), names(&targets));
                _ = writeln!(self.reasons, "- {id}{line}: {message} (`{rule}`: {targets})");
            }
        }
        String::new()
    }

    fn end(&mut self, _: &LintTotals, _: &[BadInput]) -> String {
        format!("{}{}\n{}", self.head, self.rows, self.reasons)
    }
}
