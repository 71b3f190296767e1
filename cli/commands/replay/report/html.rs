//! The report as one self-contained HTML page.

use askama::Template;
use replay::{Counts, Example, Field, Report};

use super::{Summary, by_frequency, named, place};
use crate::html::{Part, percent};

#[derive(Template)]
#[template(path = "replay.html", config = "cli/askama.toml")]
struct Page<'a> {
    title: &'static str,
    summary: &'a Summary<'a>,
    report: &'a Report,
}

pub(in super::super) fn html(summary: &Summary<'_>) -> askama::Result<String> {
    Page { title: "Replay of stored uplinks", summary, report: &summary.report }.render()
}

impl Page<'_> {
    fn numbers(&self, counts: &Counts) -> [Part; 5] {
        named(counts)
    }

    fn changed(&self) -> Vec<(&str, &Field)> {
        by_frequency(&self.report.fields)
    }

    /// The share of those that changed, in percent.
    fn share(&self, field: &Field) -> f64 {
        percent(field.uplinks, self.report.counts.changed)
    }

    fn failing(&self) -> [(&'static str, Vec<(&str, &Field)>); 2] {
        [("Newly failing", &self.report.newly_failing_by), ("Still failing", &self.report.still_failing_by)]
            .map(|(title, failures)| (title, by_frequency(failures)))
    }

    fn place(&self, example: &Example) -> String {
        place(example)
    }
}
