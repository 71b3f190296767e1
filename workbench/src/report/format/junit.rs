//! Reports as JUnit XML, which most CI systems show: a suite for each codec, a case for each example.

use std::fmt::Write as _;

use runtime::sanitize;

use super::escape::escape;
use crate::{
    layout::BadInput,
    report::{
        CodecReport, ExampleOutcome, ExampleReport, profile::coverage::shown, reporter::Reporter, totals::Totals,
    },
};

#[derive(Default)]
pub(super) struct Junit {
    has_begun: bool,
}

impl Junit {
    fn begin(&mut self) -> &'static str {
        match std::mem::replace(&mut self.has_begun, true) {
            true => "",
            false => "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"airlock functions test\">\n",
        }
    }
}

impl Reporter for Junit {
    fn codec(&mut self, report: &CodecReport) -> String {
        let mut text = self.begin().to_owned();
        let count = |is: fn(&ExampleReport) -> bool| report.examples.iter().filter(|example| is(example)).count();
        let seconds = report.examples.iter().map(|example| example.microseconds).sum::<f64>() / 1e6;
        let loading = usize::from(report.failure.is_some());
        _ = writeln!(
            text,
            "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{loading}\" skipped=\"{}\" time=\"{seconds:.6}\">",
            attribute(&report.id),
            report.examples.len() + loading,
            count(ExampleReport::has_failed),
            count(|example| matches!(example.outcome, ExampleOutcome::Excluded { .. })),
        );
        if let Some(failure) = &report.failure {
            let text_of = content(failure);
            _ = writeln!(
                text,
                "<testcase name=\"loading\"><error message=\"it cannot be loaded\">{text_of}</error></testcase>"
            );
        }
        report.examples.iter().for_each(|example| push(&mut text, report, example));
        text + "</testsuite>\n"
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        let mut text = self.begin().to_owned();
        if !problems.is_empty() {
            let count = problems.len();
            _ = writeln!(
                text,
                "<testsuite name=\"input\" tests=\"{count}\" failures=\"0\" errors=\"{count}\" skipped=\"0\">"
            );
            for problem in problems {
                let name =
                    problem.place().map_or_else(|| "input".to_owned(), |(file, line)| format!("{file}, line {line}"));
                let (name, reason) = (attribute(&name), content(&problem.describe()));
                _ = writeln!(
                    text,
                    "<testcase name=\"{name}\"><error message=\"it is not valid\">{reason}</error></testcase>"
                );
            }
            text += "</testsuite>\n";
        }
        if let Some(coverage) = &totals.coverage {
            let case = totals.lack_of_coverage().map(|lack| {
                format!(
                    "<testcase name=\"minimum\"><failure message=\"too little is tested\">{}</failure></testcase>",
                    content(&lack)
                )
            });
            let count = usize::from(case.is_some());
            let case = case.unwrap_or_default();
            let percent = |percent: f64| shown(percent).trim_end_matches('%').to_owned();
            let property = |name: &str, value: f64| format!("<property name=\"{name}\" value=\"{}\"/>", percent(value));
            let lines = property("coverage.lines", coverage.lines_percent);
            let branches = property("coverage.branches", coverage.branches_percent);
            _ = writeln!(
                text,
                "<testsuite name=\"coverage\" tests=\"{count}\" failures=\"{count}\" errors=\"0\" skipped=\"0\"><properties>{lines}\
                 {branches}</properties>{case}</testsuite>"
            );
        }
        text + "</testsuites>\n"
    }
}

fn push(text: &mut String, codec: &CodecReport, example: &ExampleReport) {
    let (title, class) = (attribute(&example.title()), attribute(&codec.id));
    _ = write!(text, "<testcase name=\"{title}\" classname=\"{class}\" time=\"{:.6}\"", example.microseconds / 1e6);
    if let Some((file, line)) = example.site(codec) {
        _ = write!(text, " file=\"{}\" line=\"{line}\"", attribute(&file));
    }
    *text += ">";
    match &example.outcome {
        ExampleOutcome::Failed(mismatch) => {
            let lines = mismatch.lines();
            let first = lines.first().map(String::as_str).unwrap_or_default();
            let all = content(&format!("{}\n{}", example.call, lines.join("\n")));
            _ = write!(text, "<failure message=\"{}\">{all}</failure>", attribute(first));
        }
        ExampleOutcome::Excluded { reason } => _ = write!(text, "<skipped message=\"{reason}\"/>"),
        ExampleOutcome::Passed | ExampleOutcome::Shown { .. } => {}
    }
    if !example.logs.is_empty() {
        _ = write!(text, "<system-out>{}</system-out>", content(&example.logs.join("\n")));
    }
    *text += "</testcase>\n";
}

fn attribute(text: &str) -> String {
    escape(&sanitize(text))
}

/// Text of several lines; XML has no way to write most control characters.
fn content(text: &str) -> String {
    text.lines().map(attribute).collect::<Vec<_>>().join("\n")
}
