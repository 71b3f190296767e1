//! Renders the report on a codec for a terminal.

use std::fmt::Write as _;

use runtime::sanitize;

use crate::{
    layout::BadInput,
    report::{
        CodecReport, ExampleOutcome, ExampleReport, coverage::ScriptCoverage, reporter::Reporter, totals::Totals,
    },
};

/// Level of detail of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Failed codecs only.
    Quiet,
    /// A line for each codec, and its failures.
    Normal,
    /// Every example with its result, warnings and logs.
    Verbose,
}

/// A report for people.
pub(super) struct Human(pub(super) Detail);

impl Reporter for Human {
    fn codec(&mut self, report: &CodecReport) -> String {
        report.text(self.0)
    }

    fn end(&mut self, totals: &Totals, _: &[BadInput]) -> String {
        let mut text = String::new();
        let scripts = totals.scripts().iter().filter(|_| self.0 > Detail::Quiet);
        scripts.for_each(|script| push_script(&mut text, script));
        _ = writeln!(text, "{totals}");
        text
    }
}

impl CodecReport {
    /// The report as lines; empty when `detail` omits this codec.
    pub fn text(&self, detail: Detail) -> String {
        if detail == Detail::Quiet && !self.has_failed() {
            return String::new();
        }
        let mut text = self.heading();
        if let Some(failure) = &self.failure {
            push_lines(&mut text, 6, failure);
        }
        let examples = self.examples.iter().filter(|example| self.failure.is_none() && example.is_included(detail));
        for example in examples {
            example.push_to(&mut text);
        }
        text
    }

    fn heading(&self) -> String {
        let mut line = format!("{}  {}", if self.has_failed() { "FAIL" } else { "ok  " }, sanitize(&self.id));
        for name in ["passed", "failed", "shown", "excluded"] {
            let count = self.examples.iter().filter(|example| example.outcome.name() == name).count();
            if count > 0 {
                _ = write!(line, "  {count} {name}");
            }
        }
        if self.loaded.is_some() && self.examples.is_empty() {
            line += "  no examples";
        }
        if let Some(cost) = &self.cost {
            _ = write!(line, "  {cost}");
        }
        line + "\n"
    }
}

impl ExampleReport {
    fn is_included(&self, detail: Detail) -> bool {
        match self.outcome {
            ExampleOutcome::Failed(_) => true,
            // The result is the point of an example without an expectation.
            ExampleOutcome::Shown { .. } => detail >= Detail::Normal,
            ExampleOutcome::Passed | ExampleOutcome::Excluded { .. } => detail == Detail::Verbose,
        }
    }

    fn push_to(&self, text: &mut String) {
        let Self { number, description, call, .. } = self;
        let dash = if description.is_empty() { "" } else { " — " };
        push_lines(text, 6, &format!("example {number}: {}{dash}{}", sanitize(call), sanitize(description)));
        match &self.outcome {
            ExampleOutcome::Passed => {
                push_lines(text, 8, &format!("passed, {:.0} µs, fuel {}", self.microseconds, self.fuel));
            }
            ExampleOutcome::Shown { result } => push_lines(text, 8, &format!("returned {}", sanitize(result))),
            ExampleOutcome::Excluded { reason } => push_lines(text, 8, &format!("excluded: {reason}")),
            ExampleOutcome::Failed(mismatch) => mismatch.lines().iter().for_each(|line| push_lines(text, 8, line)),
        }
        self.warnings.iter().for_each(|warning| push_lines(text, 8, &format!("warning: {}", sanitize(warning))));
        self.logs.iter().for_each(|log| push_lines(text, 8, &sanitize(log)));
    }
}

impl ExampleOutcome {
    fn name(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Shown { .. } => "shown",
            Self::Failed(_) => "failed",
            Self::Excluded { .. } => "excluded",
        }
    }
}

fn push_script(text: &mut String, script: &ScriptCoverage) {
    _ = writeln!(text, "coverage of {}: {}", script.name(), script.percents());
    script.missed().iter().for_each(|line| push_lines(text, 6, line));
}

/// Appends indented lines, without control characters.
fn push_lines(text: &mut String, indent: usize, lines: &str) {
    for line in lines.lines() {
        _ = writeln!(text, "{:indent$}{}", "", sanitize(line));
    }
}
