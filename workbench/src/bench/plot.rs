//! Plots as SVG within a page, without scripts. Each has its figures as text too, for those who do not see it.

use std::fmt::Write as _;

use super::statistics::Histogram;
use crate::report::format::html::escape::{escape, text};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 180.0;
/// Room for the names below the bars.
const AXIS: f64 = 24.0;
/// Room for a name to the right of where it begins.
const LABEL: f64 = 48.0;

/// Plots the number of messages by duration, each bar wider than the one before by the same factor.
pub(super) fn histogram(histogram: &Histogram, label: &str) -> String {
    let bars = histogram.bars();
    let highest = bars.iter().map(|(.., count)| *count).max().unwrap_or(1);
    let all: usize = bars.iter().map(|(.., count)| count).sum();
    let mut svg = begin(HEIGHT + AXIS, label);
    let width = WIDTH / bars.len().max(1) as f64;
    let step = (bars.len() / 8).max(1);
    for (index, (from, to, count)) in bars.iter().enumerate() {
        let (left, height) = (index as f64 * width, HEIGHT * *count as f64 / highest as f64);
        let percent = 100.0 * *count as f64 / all.max(1) as f64;
        _ = writeln!(
            svg,
            "<g><title>{from:.2} to {to:.2} µs: {count} messages, {percent:.1}%</title><rect class=\"bar\" x=\"{left:.1}\" \
             y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/></g>",
            HEIGHT - height,
            (width - 1.0).max(0.5)
        );
        if index % step == 0 && left + LABEL <= WIDTH {
            _ = writeln!(svg, "<text x=\"{left:.1}\" y=\"{}\">{}</text>", HEIGHT + 16.0, axis(*from));
        }
    }
    svg + "</svg>\n"
}

/// Names with a bar each, as long as its number.
pub(super) fn bars(rows: &[(String, u64)], label: &str) -> String {
    const ROW: f64 = 22.0;
    const NAMES: f64 = 300.0;
    let highest = rows.iter().map(|(_, number)| *number).max().unwrap_or(1).max(1);
    let mut svg = begin(ROW * rows.len() as f64 + 4.0, label);
    for (index, (name, number)) in rows.iter().enumerate() {
        let (top, room) = (index as f64 * ROW, WIDTH - NAMES - 110.0);
        let length = (room * *number as f64 / highest as f64).max(1.0);
        let shown: String = name.chars().take(40).collect();
        _ = writeln!(
            svg,
            "<g><title>{}: {number}</title><text x=\"0\" y=\"{:.1}\">{}</text><rect class=\"bar\" x=\"{NAMES}\" \
             y=\"{:.1}\" width=\"{length:.1}\" height=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\">{number}</text></g>",
            text(name),
            top + 15.0,
            text(&shown),
            top + 3.0,
            ROW - 6.0,
            NAMES + length + 6.0,
            top + 15.0
        );
    }
    svg + "</svg>\n"
}

fn begin(height: f64, label: &str) -> String {
    let label = escape(label);
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\" aria-label=\"{label}\">\n")
}

fn axis(microseconds: f64) -> String {
    match microseconds {
        long if long >= 1000.0 => format!("{:.1} ms", long / 1e3),
        short if short < 10.0 => format!("{short:.1} µs"),
        middle => format!("{middle:.0} µs"),
    }
}
