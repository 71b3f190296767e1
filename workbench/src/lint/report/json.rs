//! The report for programs: a line of JSON for each codec, and one for the totals.

use super::{LintReporter, LintTotals};
use crate::{
    layout::BadInput,
    lint::LintReport,
    report::format::json::{end, escaped},
};

pub(super) struct Json;

impl LintReporter for Json {
    fn codec(&mut self, report: &LintReport) -> String {
        escaped(report) + "\n"
    }

    fn end(&mut self, totals: &LintTotals, problems: &[BadInput]) -> String {
        end(totals, problems)
    }
}
