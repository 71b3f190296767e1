//! Reports as an HTML page that stands alone: it loads nothing, and needs no script.

pub(crate) mod escape;
pub(crate) mod page;

use std::fmt::Write as _;

use self::{
    escape::{lines, text},
    page::{Page, share, table},
};
use crate::{
    codec::compare::Difference,
    layout::BadInput,
    report::{
        CodecReport, ExampleOutcome, ExampleReport,
        cost::Cost,
        coverage::{ScriptCoverage, TotalCoverage},
        profile::coverage::shown,
        reporter::Reporter,
        totals::Totals,
    },
};

/// The codecs so far: the totals stand above them.
#[derive(Default)]
pub(super) struct Html {
    failed: String,
    passed: Vec<Vec<String>>,
}

impl Reporter for Html {
    fn codec(&mut self, report: &CodecReport) -> String {
        match report.has_failed() {
            true => push_failed(&mut self.failed, report),
            false => self.passed.push(row(report)),
        }
        String::new()
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        let mut page = Page::new("Tests of payload functions");
        push_totals(&mut page.summary, totals, problems.iter().map(BadInput::count).sum());
        let bad: String = problems.iter().map(|problem| format!("<li>{}</li>\n", text(&problem.describe()))).collect();
        if !bad.is_empty() {
            page.section("input", "Not valid", &format!("<ul>\n{bad}</ul>\n"));
        }
        page.section("failed", "Failed", &self.failed);
        if !self.passed.is_empty() {
            let names = ["Codec", "Examples", "Median time", "Median fuel", "Highest fuel"];
            page.section("passed", "As expected", &table("Codecs", &names, self.passed.drain(..)));
        }
        if let Some(coverage) = &totals.coverage {
            page.section("coverage", "Coverage", &covered(coverage));
        }
        page.finish(env!("CARGO_PKG_VERSION"))
    }
}

fn push_totals(summary: &mut String, totals: &Totals, problems: usize) {
    let lack = totals.lack_of_coverage();
    let (verdict, class) = match (totals.codecs_failed, problems) {
        (0, 0) if lack.is_some() => ("Too little is tested.", "verdict bad"),
        (0, 0) => ("All examples returned what was expected.", "verdict"),
        (0, _) => ("Some files or lines could not be read.", "verdict bad"),
        _ => ("Some examples did not return what was expected.", "verdict bad"),
    };
    let excluded = totals.excluded.values().sum::<usize>();
    _ = writeln!(summary, "<p class=\"{class}\">{verdict}</p>\n<dl>");
    for (name, value) in [
        ("Codecs", totals.codecs),
        ("with failures", totals.codecs_failed),
        ("Examples", totals.examples),
        ("passed", totals.passed),
        ("failed", totals.failed),
        ("shown only", totals.shown),
        ("excluded", excluded),
        ("not valid", problems),
    ] {
        // What there can always be stands there also if there is none.
        if value > 0 || !["shown only", "excluded", "not valid"].contains(&name) {
            _ = writeln!(summary, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
    }
    if let Some(TotalCoverage { lines_percent, branches_percent, .. }) = &totals.coverage {
        _ = writeln!(summary, "<div><dt>lines run</dt><dd>{}</dd></div>", shown(*lines_percent));
        _ = writeln!(summary, "<div><dt>branches taken</dt><dd>{}</dd></div>", shown(*branches_percent));
    }
    *summary += "</dl>\n";
    if let Some(lack) = lack {
        _ = writeln!(summary, "<p>Not enough: {}.</p>", text(&lack));
    }
    if let Some(cost) = &totals.cost {
        _ = writeln!(summary, "<p>Per example: {cost}.</p>");
    }
}

fn row(report: &CodecReport) -> Vec<String> {
    let cost = |show: fn(&Cost) -> String| report.cost.as_ref().map_or_else(|| "–".to_owned(), show);
    vec![
        text(&report.id),
        report.examples.len().to_string(),
        cost(|cost| format!("{:.0} µs", cost.microseconds_median)),
        cost(|cost| cost.fuel_median.to_string()),
        cost(|cost| cost.fuel_max.to_string()),
    ]
}

fn covered(coverage: &TotalCoverage) -> String {
    let row = |script: &ScriptCoverage| {
        let (lines, branches) = (script.coverage.lines_percent(), script.coverage.branches_percent());
        vec![text(&script.name()), share(lines), share(branches), script.missed().join("; ")]
    };
    table("Coverage", &["Script", "Lines", "Branches", "Missing"], coverage.scripts.iter().map(row))
}

fn push_failed(page: &mut String, report: &CodecReport) {
    let failed = report.examples.iter().filter(|example| example.has_failed());
    let count = failed.clone().count();
    let what = match &report.failure {
        Some(_) => "cannot be loaded".to_owned(),
        None => format!("{count} of {} failed", report.examples.len()),
    };
    _ = writeln!(page, "<details open><summary>{} <span>{what}</span></summary>", text(&report.id));
    if let Some(file) = &report.file {
        _ = writeln!(page, "<p>{}</p>", text(&file.display().to_string()));
    }
    match &report.failure {
        Some(failure) => _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", lines(failure)),
        None => failed.for_each(|example| push_example(page, report, example)),
    }
    *page += "</details>\n";
}

fn push_example(page: &mut String, codec: &CodecReport, example: &ExampleReport) {
    _ = writeln!(page, "<h3>{}</h3>", text(&example.title()));
    let site = example.site(codec).map(|(file, line)| format!("{}, line {line}: ", text(&file))).unwrap_or_default();
    _ = writeln!(page, "<p>{site}<code>{}</code></p>", text(&example.call));
    let ExampleOutcome::Failed(mismatch) = &example.outcome else { return };
    if mismatch.differences.is_empty() {
        _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", lines(&mismatch.lines().join("\n")));
    } else {
        *page += &table("Differences", &["Path", "Expected", "Got"], mismatch.differences.iter().map(difference));
    }
    if !example.logs.is_empty() {
        _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", lines(&example.logs.join("\n")));
    }
}

fn difference(difference: &Difference) -> Vec<String> {
    let path = if difference.path.is_empty() { "the result" } else { &difference.path };
    let cell = |value: &Option<String>| {
        value.as_deref().map_or_else(|| "nothing".to_owned(), |value| format!("<code>{}</code>", text(value)))
    };
    vec![text(path), cell(&difference.expected), cell(&difference.got)]
}
