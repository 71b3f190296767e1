//! The report as annotations of GitHub Actions, one for each finding and line.

use super::{LintReporter, LintTotals, by_finding, level, names, site};
use crate::{
    layout::BadInput,
    lint::LintReport,
    report::format::github::{annotation_of, bad_input},
};

pub(super) struct Github;

impl LintReporter for Github {
    fn codec(&mut self, report: &LintReport) -> String {
        let annotations = by_finding(report).into_iter().map(|(finding, targets)| {
            let title = format!("{}, {}: {}", report.id, names(&targets), finding.rule.name());
            annotation_of(level(finding), &title, &finding.message, site(report, finding))
        });
        let failed = (report.examples_failed > 0).then(|| {
            let counts = (report.examples_failed, report.examples);
            let message =
                format!("{} of {} examples fail everywhere, and say nothing about networks", counts.0, counts.1);
            let file = report.file.as_ref().map(|file| (file.display().to_string(), 1));
            annotation_of("warning", &report.id, &message, file)
        });
        annotations.chain(failed).collect()
    }

    fn end(&mut self, totals: &LintTotals, problems: &[BadInput]) -> String {
        let LintTotals { codecs, codecs_failed, .. } = totals;
        format!("{}codecs: {codecs}, with a network on which they do not run: {codecs_failed}\n", bad_input(problems))
    }
}
