//! The report of a load test as a file: a self-contained HTML page, Markdown, or JSON.

use std::{fmt::Write, fs, path::PathBuf, str::FromStr};

use anyhow::Context;
use types::{AppId, Timestamp};

use super::result::LoadResult;
use crate::{html::escape, terminal::json_lines};

const STYLE: &str = ":root{color-scheme:light dark}body{font:1rem/1.5 sans-serif;max-width:45rem;margin:2rem auto;\
    padding:0 1rem;background:Canvas;color:CanvasText}table{border-collapse:collapse;width:100%;margin:1rem 0}\
    th,td{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #8886}td,.number{text-align:right}td.bar{width:55%}\
    .bar div{height:1rem;background:#2a7;min-width:1px}";

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
            Format::Html => html(subject, result),
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

fn html(Subject { app_id, started }: &Subject, result: &LoadResult) -> String {
    let title = escape(&format!("Load of {app_id}"));
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style>\
         <main><h1>{title}</h1><p>{}</p><table>",
        started.to_rfc3339_millis()
    );
    // Writing to a string cannot fail.
    for (title, value) in result.record().rows() {
        _ = write!(page, "<tr><th scope=\"row\">{}<td>{}", escape(title), escape(value));
    }
    page.push_str("</table><h2>Latency</h2><table><tr><th scope=\"col\">Milliseconds<th scope=\"col\" class=\"number\">Uplinks<td>");
    let histogram = result.histogram();
    let most = histogram.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    for (range, count) in histogram {
        let width = 100.0 * count as f64 / most as f64;
        let range = escape(&range);
        _ = write!(
            page,
            "<tr><th scope=\"row\">{range}<td>{count}<td class=\"bar\"><div style=\"width:{width:.1}%\"></div>"
        );
    }
    page.push_str("</table></main></html>\n");
    page
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
