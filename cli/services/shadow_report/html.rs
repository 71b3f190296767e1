//! The report as one self-contained HTML page.

use askama::Template;

use super::{Codec, Counts, Report, text};
use crate::html::{Part, percent};

#[derive(Template)]
#[template(path = "shadow.html", config = "cli/askama.toml")]
struct Page<'a> {
    title: &'static str,
    report: &'a Report,
    codecs: Vec<(&'a String, &'a Codec)>,
}

/// The page.
pub(super) fn html(report: &Report) -> askama::Result<String> {
    Page { title: "Shadow run of Airlock", report, codecs: text::listed(report) }.render()
}

impl Page<'_> {
    fn numbers(&self, counts: &Counts) -> [Part; 5] {
        [
            ("equal", "equal", counts.equal),
            ("changed", "different", counts.different),
            ("decoded", "failed there only", counts.failed_there),
            ("failing", "failed here only", counts.failed_here),
            ("other", "other", counts.failed_both + counts.only_here + counts.without_codec),
        ]
    }

    /// The most fuel, in percent of the limit.
    fn share(&self, codec: &Codec) -> f64 {
        percent(codec.fuel.max, self.report.fuel_max)
    }
}
