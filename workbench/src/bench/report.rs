//! Renders measurements for people, for pull requests and as a page.

mod html;
mod human;
mod markdown;
mod rows;
mod table;

use super::figures::Bench;

/// A format of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchFormat {
    /// For a terminal.
    Human,
    /// For programs, and what a baseline is saved as.
    Json,
    /// For pull requests.
    Markdown,
    /// A page that stands alone, with plots.
    Html,
}

impl BenchFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Human, Self::Json, Self::Markdown, Self::Html];

    /// The name in arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Html => "html",
        }
    }

    /// Returns true if the format shows the fuel of lines.
    pub const fn has_lines(self) -> bool {
        matches!(self, Self::Json | Self::Html)
    }
}

impl Bench {
    /// The report, except as JSON.
    pub fn text(&self, format: BenchFormat) -> String {
        match format {
            BenchFormat::Html => html::page(self),
            BenchFormat::Markdown => self.codecs.iter().map(markdown::markdown).collect(),
            BenchFormat::Human | BenchFormat::Json => self.codecs.iter().map(human::human).collect(),
        }
    }
}
