//! The report in SARIF, which code scanning shows beside the lines.

use super::{LintReporter, LintTotals, by_finding, level, names, site};
use crate::{
    layout::BadInput,
    lint::{LintReport, finding::Rule},
    report::format::sarif,
};

#[derive(Default)]
pub(super) struct Sarif(sarif::Sarif);

impl LintReporter for Sarif {
    fn codec(&mut self, report: &LintReport) -> String {
        for (finding, targets) in by_finding(report) {
            let text = format!("{}, {}: {}", report.id, names(&targets), finding.message);
            self.0.push((finding.rule.name(), level(finding)), &text, site(report, finding));
        }
        String::new()
    }

    fn end(&mut self, _: &LintTotals, problems: &[BadInput]) -> String {
        self.0.document(&Rule::ALL.map(|(rule, text)| (rule.name(), text)), problems)
    }
}
