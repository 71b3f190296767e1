//! Reports as an HTML page that stands alone: it loads nothing, and needs no script.

use std::fmt::Write as _;

use runtime::sanitize;

use super::{CodecReport, ExampleReport, Outcome, reporter::Reporter, totals::Totals};
use crate::{cost::Cost, layout::BadInput};

/// The beginning of a page.
pub(crate) const HEAD: &str = include_str!("html/head.html");

/// The codecs so far: the totals stand above them.
#[derive(Default)]
pub(super) struct Html {
    failed: String,
    passed: String,
}

impl Reporter for Html {
    fn codec(&mut self, report: &CodecReport) -> String {
        match report.has_failed() {
            true => push_failed(&mut self.failed, report),
            false => push_row(&mut self.passed, report),
        }
        String::new()
    }

    fn end(&mut self, totals: &Totals, problems: &[BadInput]) -> String {
        let mut page = HEAD.to_owned();
        push_totals(&mut page, totals, problems.iter().map(BadInput::count).sum());
        if !problems.is_empty() {
            page += "<section aria-labelledby=\"input\"><h2 id=\"input\">Not valid</h2>\n<ul>\n";
            problems.iter().for_each(|problem| _ = writeln!(page, "<li>{}</li>", text(&problem.to_string())));
            page += "</ul></section>\n";
        }
        if !self.failed.is_empty() {
            page += "<section aria-labelledby=\"failed\"><h2 id=\"failed\">Failed</h2>\n";
            page += &self.failed;
            page += "</section>\n";
        }
        if !self.passed.is_empty() {
            page += "<section aria-labelledby=\"passed\"><h2 id=\"passed\">As expected</h2>\n<div class=\"wide\" \
                     tabindex=\"0\" role=\"region\" aria-labelledby=\"passed\"><table>\n<thead><tr><th scope=\"col\">Codec\
                     </th><th scope=\"col\">Examples</th><th scope=\"col\">Median time</th><th scope=\"col\">Median \
                     fuel</th><th scope=\"col\">Highest fuel</th></tr></thead>\n<tbody>\n";
            page += &self.passed;
            page += "</tbody></table></div></section>\n";
        }
        page + "</main>\n</body>\n</html>\n"
    }
}

fn push_totals(page: &mut String, totals: &Totals, problems: usize) {
    let verdict = match (totals.codecs_failed, problems) {
        (0, 0) => "All examples returned what was expected.",
        (0, _) => "Some files or lines could not be read.",
        _ => "Some examples did not return what was expected.",
    };
    let excluded = totals.excluded.values().sum::<usize>();
    _ = writeln!(page, "<p class=\"verdict\">{verdict}</p>\n<dl>");
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
        _ = writeln!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    *page += "</dl>\n";
    if let Some(cost) = &totals.cost {
        _ = writeln!(page, "<p>Per example: {cost}.</p>");
    }
}

fn push_row(page: &mut String, report: &CodecReport) {
    let cost = |show: fn(&Cost) -> String| report.cost.as_ref().map_or_else(|| "–".to_owned(), show);
    _ = writeln!(
        page,
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        text(&report.id),
        report.examples.len(),
        cost(|cost| format!("{:.0} µs", cost.microseconds_median)),
        cost(|cost| cost.fuel_median.to_string()),
        cost(|cost| cost.fuel_max.to_string()),
    );
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
    let Outcome::Failed(mismatch) = &example.outcome else { return };
    if mismatch.differences.is_empty() {
        _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", lines(&mismatch.lines().join("\n")));
    } else {
        *page += "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Differences\"><table>\n<thead><tr>\
                  <th scope=\"col\">Path</th><th scope=\"col\">Expected</th><th scope=\"col\">Got</th></tr></thead>\n<tbody>\n";
        for difference in &mismatch.differences {
            let path = if difference.path.is_empty() { "the result" } else { &difference.path };
            let cell = |value: &Option<String>| {
                value.as_deref().map_or_else(|| "nothing".to_owned(), |value| format!("<code>{}</code>", text(value)))
            };
            let (expected, got) = (cell(&difference.expected), cell(&difference.got));
            _ = writeln!(page, "<tr><th scope=\"row\">{}</th><td>{expected}</td><td>{got}</td></tr>", text(path));
        }
        *page += "</tbody></table></div>\n";
    }
    if !example.logs.is_empty() {
        _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", lines(&example.logs.join("\n")));
    }
}

/// Text as it can stand in a page.
pub(crate) fn text(text: &str) -> String {
    escape(&sanitize(text))
}

/// Text of several lines.
pub(crate) fn lines(text_of: &str) -> String {
    text_of.lines().map(text).collect::<Vec<_>>().join("\n")
}

/// `text` with the characters escaped that mean something in HTML and XML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            other => escaped.push(other),
        }
    }
    escaped
}
