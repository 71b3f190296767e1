//! Reports as an HTML page that stands alone: it loads nothing, and needs no script.

use askama::Template;

use crate::{
    layout::BadInput,
    report::{
        CodecReport, ExampleOutcome, ExampleReport,
        cost::Cost,
        profile::coverage::{Coverage, shown},
        reporter::Reporter,
        totals::Totals,
    },
};

/// The codecs so far: the totals stand above them.
#[derive(Default)]
pub(super) struct Html {
    failed: String,
    passed: Vec<Passed>,
}

struct Passed {
    id: String,
    examples: usize,
    cost: Option<Cost>,
}

#[derive(Template)]
#[template(path = "tests_failed.html")]
struct Failed<'a> {
    report: &'a CodecReport,
    /// Those that failed.
    examples: Vec<&'a ExampleReport>,
}

#[derive(Template)]
#[template(path = "tests.html")]
struct Page<'a> {
    title: &'static str,
    verdict: &'static str,
    is_bad: bool,
    counts: Vec<(&'static str, String)>,
    totals: &'a Totals,
    /// The ids of the sections and their titles.
    sections: Vec<(&'static str, &'static str)>,
    problems: &'a [BadInput],
    failed: &'a str,
    passed: &'a [Passed],
}

impl Reporter for Html {
    fn codec(&mut self, report: &CodecReport) -> String {
        if report.has_failed() {
            let examples = report.examples.iter().filter(|example| example.has_failed()).collect();
            self.failed += &Failed { report, examples }.to_string();
        } else {
            self.passed.push(Passed { id: report.id.clone(), examples: report.examples.len(), cost: report.cost });
        }
        String::new()
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        let not_valid = problems.iter().map(BadInput::count).sum();
        let (verdict, is_bad) = verdict(totals, not_valid);
        let sections = [
            ("input", "Not valid", !problems.is_empty()),
            ("failed", "Failed", !self.failed.is_empty()),
            ("passed", "As expected", !self.passed.is_empty()),
            ("coverage", "Coverage", totals.coverage.is_some()),
        ];
        let sections = sections.into_iter().filter(|(.., is_there)| *is_there).map(|(id, title, _)| (id, title));
        let page = Page {
            title: "Tests of payload functions",
            verdict,
            is_bad,
            counts: counts(totals, not_valid),
            totals,
            sections: sections.collect(),
            problems,
            failed: &self.failed,
            passed: &self.passed,
        };
        page.to_string()
    }
}

impl Page<'_> {
    /// The shares of lines and of branches in percent, and as they are shown.
    fn shares(&self, coverage: &Coverage) -> [(f64, String); 2] {
        [coverage.lines_percent(), coverage.branches_percent()].map(|percent| (percent, shown(percent)))
    }
}

/// The verdict, and true if it is a bad one.
fn verdict(totals: &Totals, not_valid: usize) -> (&'static str, bool) {
    match (totals.codecs_failed, not_valid) {
        (0, 0) if totals.lack_of_coverage().is_some() => ("Too little is tested.", true),
        (0, 0) => ("All examples returned what was expected.", false),
        (0, _) => ("Some files or lines could not be read.", true),
        _ => ("Some examples did not return what was expected.", true),
    }
}

fn counts(totals: &Totals, not_valid: usize) -> Vec<(&'static str, String)> {
    let always = [
        ("Codecs", totals.codecs),
        ("with failures", totals.codecs_failed),
        ("Examples", totals.examples),
        ("passed", totals.passed),
        ("failed", totals.failed),
    ];
    let excluded = totals.excluded.values().sum();
    let others = [("shown only", totals.shown), ("excluded", excluded), ("not valid", not_valid)];
    let others = others.into_iter().filter(|(_, count)| *count > 0);
    let counts = always.into_iter().chain(others).map(|(name, count)| (name, count.to_string()));
    let coverage = totals.coverage.iter().flat_map(|coverage| {
        [("lines run", shown(coverage.lines_percent)), ("branches taken", shown(coverage.branches_percent))]
    });
    counts.chain(coverage).collect()
}
