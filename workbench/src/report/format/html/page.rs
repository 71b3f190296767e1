//! The frame of a page that stands alone: it loads nothing, and needs no script.

use std::fmt::Write as _;

use super::escape::text;
use crate::report::profile::coverage::shown;

const HEAD: &str = include_str!("head.html");
/// The title in [`HEAD`].
const TITLE: &str = "TITLE";
/// Maximum number of sections for which there are links at the top.
const LINKS_MAX: usize = 12;

/// A page: a summary, then sections.
pub(crate) struct Page {
    title: &'static str,
    /// HTML below the title.
    pub(crate) summary: String,
    links: Vec<String>,
    sections: String,
}

impl Page {
    pub(crate) fn new(title: &'static str) -> Self {
        Self { title, summary: String::new(), links: Vec::new(), sections: String::new() }
    }

    /// Adds a section, unless it is empty.
    pub(crate) fn section(&mut self, id: &str, title: &str, content: &str) {
        if content.is_empty() {
            return;
        }
        let title = text(title);
        self.links.push(format!("<li><a href=\"#{id}\">{title}</a></li>"));
        _ = writeln!(
            self.sections,
            "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{title}</h2>\n{content}</section>"
        );
    }

    /// The whole page, made by a version of Airlock.
    pub(crate) fn finish(&self, version: &str) -> String {
        let mut page = HEAD.replace(TITLE, self.title);
        page += &self.summary;
        if (2..=LINKS_MAX).contains(&self.links.len()) {
            _ = writeln!(page, "<nav aria-label=\"Sections\"><ul>{}</ul></nav>", self.links.concat());
        }
        page += "</header>\n<main>\n";
        page += &self.sections;
        _ = writeln!(page, "</main>\n<footer><p>Airlock {}</p></footer>\n</body>\n</html>", text(version));
        page
    }
}

/// A table with these names at its top, in a region that scrolls on its own if the table is too wide. The first cell of
/// a row is its name. Cells are HTML.
pub(crate) fn table(label: &str, names: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let names: String = names.iter().map(|name| format!("<th scope=\"col\">{}</th>", text(name))).collect();
    let mut table = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n",
        text(label)
    );
    for row in rows {
        table += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            _ = match column {
                0 => write!(table, "<th scope=\"row\">{cell}</th>"),
                _ => write!(table, "<td>{cell}</td>"),
            };
        }
        table += "</tr>\n";
    }
    table + "</tbody></table></div>\n"
}

/// A share in percent, also as a bar.
pub(crate) fn share(percent: f64) -> String {
    format!(
        "<svg width=\"80\" height=\"10\" aria-hidden=\"true\"><rect class=\"bar\" width=\"{:.1}\" height=\"10\"/></svg> \
         {}",
        0.8 * percent,
        shown(percent)
    )
}
