//! Reports as Markdown, for pull requests and the summaries of CI jobs: the totals, then the failures.

use std::fmt::Write as _;

use runtime::sanitize;

use crate::{
    layout::BadInput,
    report::{CodecReport, ExampleOutcome, ExampleReport, reporter::Reporter, totals::Totals},
};

/// Maximum length of all failures, and of all gaps of coverage, in bytes: GitHub takes a summary of 1 MiB.
const BYTES_MAX: usize = 400_000;

/// The failures so far, and how many more there are.
#[derive(Default)]
pub(super) struct Markdown {
    failures: String,
    more: usize,
}

impl Markdown {
    fn push(&mut self, [codec, example, what, site]: [&str; 4]) {
        if self.failures.len() < BYTES_MAX {
            _ = writeln!(self.failures, "| {} | {} | {} | {} |", cell(codec), cell(example), cell(what), cell(site));
        } else {
            self.more += 1;
        }
    }
}

impl Reporter for Markdown {
    fn codec(&mut self, report: &CodecReport) -> String {
        if let Some(failure) = &report.failure {
            let file = report.file.as_ref().map(|file| file.display().to_string());
            let line = report.failure_line.unwrap_or(1);
            let site = file.map(|file| format!("{file}, line {line}")).unwrap_or_default();
            self.push([&report.id, "all", failure.lines().next().unwrap_or_default(), &site]);
            return String::new();
        }
        for example in report.examples.iter().filter(|example| example.has_failed()) {
            let site = example.site(report).map(|(file, line)| format!("{file}, line {line}")).unwrap_or_default();
            self.push([&report.id, &example.title(), &what(example), &site]);
        }
        String::new()
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        let lack = totals.lack_of_coverage();
        let has_failed = totals.codecs_failed > 0 || !problems.is_empty() || lack.is_some();
        let mut text = format!("### {} Payload functions\n\n", if has_failed { "❌" } else { "✅" });
        // Each line of the totals is a line here, too.
        totals.to_string().lines().for_each(|line| _ = writeln!(text, "- {}", cell(line)));
        lack.iter().for_each(|lack| _ = writeln!(text, "- {}", cell(lack)));
        if !self.failures.is_empty() {
            text += "\n| codec | example | what is wrong | where |\n|---|---|---|---|\n";
            text += &self.failures;
        }
        if self.more > 0 {
            _ = writeln!(text, "\nand {} more", self.more);
        }
        if !problems.is_empty() {
            text += "\nNot valid:\n\n";
            problems.iter().for_each(|problem| _ = writeln!(text, "- {}", cell(&problem.describe())));
        }
        let mut gaps = String::new();
        for script in totals.scripts().iter().filter(|script| !script.missed().is_empty()) {
            if gaps.len() < BYTES_MAX {
                _ = writeln!(gaps, "- {}: {}", cell(&script.name()), script.missed().join("; "));
            }
        }
        if gaps.is_empty() { text } else { format!("{text}\nNo example reaches:\n\n{gaps}") }
    }
}

/// Describes the difference, or the failure of the call, in a line.
fn what(example: &ExampleReport) -> String {
    let ExampleOutcome::Failed(mismatch) = &example.outcome else { return String::new() };
    match &mismatch.failure {
        Some(failure) => failure.lines().next().unwrap_or_default().to_owned(),
        None => mismatch.lines().join("; "),
    }
}

/// Text as Markdown that means nothing but itself, also in a table.
pub(crate) fn cell(text: &str) -> String {
    let mut cell = String::new();
    for character in sanitize(text).chars() {
        if "\\`*_{}[]<>#|!&~$@".contains(character) {
            cell.push('\\');
        }
        cell.push(character);
    }
    cell
}
