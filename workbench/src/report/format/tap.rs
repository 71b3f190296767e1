//! Reports in the Test Anything Protocol, version 14.

use std::fmt::Write as _;

use runtime::sanitize;

use crate::{
    layout::BadInput,
    report::{CodecReport, ExampleOutcome, reporter::Reporter, totals::Totals},
};

#[derive(Default)]
pub(super) struct Tap {
    number: usize,
}

impl Tap {
    /// The line that comes before all others.
    fn version(&self) -> String {
        if self.number == 0 { "TAP version 14\n".to_owned() } else { String::new() }
    }

    fn point(&mut self, is_ok: bool, name: &str, details: &[String]) -> String {
        let mut text = self.version();
        self.number += 1;
        let name = sanitize(name).replace('\\', "\\\\").replace('#', "\\#");
        _ = writeln!(text, "{} {} - {name}", if is_ok { "ok" } else { "not ok" }, self.number);
        if !details.is_empty() {
            text += "  ---\n  message: |\n";
            details.iter().for_each(|line| _ = writeln!(text, "    {line}"));
            text += "  ...\n";
        }
        text
    }
}

impl Reporter for Tap {
    fn codec(&mut self, report: &CodecReport) -> String {
        let failure: Vec<String> = report.failure.iter().flat_map(|failure| failure.lines().map(sanitize)).collect();
        let mut text = String::new();
        if report.examples.is_empty() || !failure.is_empty() {
            text += &self.point(failure.is_empty(), &format!("{} loads", report.id), &failure);
        }
        for example in &report.examples {
            let name = format!("{}: {}", report.id, example.title());
            text += &match &example.outcome {
                ExampleOutcome::Failed(mismatch) => self.point(false, &name, &mismatch.lines()),
                ExampleOutcome::Excluded { reason } => {
                    let point = self.point(true, &name, &[]);
                    format!("{} # SKIP {reason}\n", point.trim_end())
                }
                ExampleOutcome::Passed | ExampleOutcome::Shown { .. } => self.point(true, &name, &[]),
            };
        }
        text
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        let bad: Vec<String> = problems.iter().map(|problem| sanitize(&problem.describe())).collect();
        let mut text: String = bad.iter().map(|problem| self.point(false, problem, &[])).collect();
        if let Some(lack) = totals.lack_of_coverage() {
            text += &self.point(false, &lack, &[]);
        }
        if text.is_empty() {
            text = self.version();
        }
        _ = writeln!(text, "1..{}", self.number);
        if let Some(coverage) = &totals.coverage {
            _ = writeln!(text, "# {coverage}");
        }
        for script in totals.scripts() {
            _ = writeln!(text, "# {}: {}", script.name(), script.percents());
            script.missed().iter().for_each(|line| _ = writeln!(text, "#   {line}"));
        }
        text
    }
}
