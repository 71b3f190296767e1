//! The report of a load test as a file: a self-contained HTML page, Markdown, or JSON.

use std::{fmt::Write, fs, path::PathBuf, str::FromStr};

use anyhow::Context;
use askama::Template;
use types::{AppId, Timestamp};

use super::result::LoadResult;
use crate::{html::percent, output::Record, terminal::json_lines};

/// A file for a report, whose name says in which form it is.
#[derive(Clone, Debug)]
pub(super) struct ReportFile {
    path: PathBuf,
    format: Format,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Html,
    Markdown,
    Json,
}

/// The application that was tested, and the start of the test.
pub(super) struct Subject {
    pub(super) app_id: AppId,
    pub(super) started: Timestamp,
}

impl FromStr for ReportFile {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let path = PathBuf::from(text);
        let format = match path.extension().and_then(|extension| extension.to_str()) {
            Some("html") => Format::Html,
            Some("md") => Format::Markdown,
            Some("json") => Format::Json,
            _ => return Err("the name of a report ends in .html, .md or .json"),
        };
        Ok(Self { path, format })
    }
}

impl ReportFile {
    pub(super) fn write(&self, subject: &Subject, result: &LoadResult) -> anyhow::Result<()> {
        let text = match self.format {
            Format::Html => Page::new(subject, result).render()?,
            Format::Markdown => markdown(subject, result),
            Format::Json => json_lines(&result.record().into_value(), true)? + "\n",
        };
        fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn markdown(Subject { app_id, started }: &Subject, result: &LoadResult) -> String {
    let mut text = format!("# Load of {app_id}\n\n{}\n\n| | |\n|---|--:|\n", started.to_rfc3339_millis());
    // Writing to a string cannot fail.
    for (title, value) in result.record().rows() {
        _ = writeln!(text, "| {title} | {value} |");
    }
    text.push_str("\n| Latency, ms | Uplinks |\n|---|--:|\n");
    for (range, count) in result.histogram() {
        _ = writeln!(text, "| {range} | {count} |");
    }
    text
}

#[derive(Template)]
#[template(path = "load.html", config = "cli/askama.toml")]
struct Page {
    title: String,
    started: String,
    record: Record,
    /// Ranges of latencies, each with its uplinks, and these in percent of the most.
    histogram: Vec<(String, usize, f64)>,
}

impl Page {
    fn new(Subject { app_id, started }: &Subject, result: &LoadResult) -> Self {
        let histogram = result.histogram();
        let most = histogram.iter().map(|(_, count)| *count as u64).max().unwrap_or_default();
        let bar = |(range, count): (String, usize)| (range, count, percent(count as u64, most));
        Self {
            title: format!("Load of {app_id}"),
            started: started.to_rfc3339_millis(),
            record: result.record(),
            histogram: histogram.into_iter().map(bar).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_report_says_its_form() {
        for name in ["a.html", "b/c.md", "d.json"] {
            name.parse::<ReportFile>().unwrap();
        }
        for name in ["html", "a.htm", ""] {
            assert!(name.parse::<ReportFile>().unwrap_err().contains(".html, .md or .json"), "{name}");
        }
    }
}
