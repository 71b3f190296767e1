//! Measurements as an HTML page that stands alone: it loads nothing, and needs no script.

use std::fmt::Write as _;

use super::{
    rows::{describe, failed, messages, peer_failures},
    table::Table,
};
use crate::{
    bench::{
        figures::{Bench, CodecBench, LineFuel},
        plot,
        statistics::Histogram,
    },
    report::html::{HEAD, lines, text},
};

/// How many messages and lines a plot shows: the most expensive ones.
const MESSAGES_MAX: usize = 30;
const LINES_MAX: usize = 40;
/// Characters of a line of code.
const LINE_CHARS_MAX: usize = 120;

pub(super) fn page(bench: &Bench) -> String {
    let mut page = HEAD.replace("Tests of payload functions", "What payload functions cost");
    let messages: usize = bench.codecs.iter().map(|codec| codec.messages.len()).sum();
    let failures = bench.failures().count();
    page += "<dl>\n";
    for (name, number) in [("Codecs", bench.codecs.len()), ("Messages", messages), ("Failures", failures)] {
        _ = writeln!(page, "<div><dt>{name}</dt><dd>{number}</dd></div>");
    }
    _ = writeln!(
        page,
        "</dl>\n<p>Measured by Airlock {}. Fuel is exact, and the same on every machine. Times are of this one; the \
         interval contains the true median with a probability of 95%.</p>",
        text(&bench.airlock)
    );
    bench.codecs.iter().enumerate().for_each(|(index, codec)| push_codec(&mut page, index, codec));
    page + "</main>\n</body>\n</html>\n"
}

fn push_codec(page: &mut String, index: usize, codec: &CodecBench) {
    let id = format!("codec-{index}");
    _ = writeln!(page, "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\">{}</h2>", text(&codec.id));
    if let Some(failure) = &codec.failure {
        _ = writeln!(page, "<p>It cannot be loaded.</p>\n<pre tabindex=\"0\">{}</pre>", lines(failure));
    }
    if let Some(loading) = &codec.loading {
        _ = writeln!(page, "<p>Loading: {}.</p>", text(&describe(loading)));
    }
    if !codec.messages.is_empty() {
        push_table(page, &messages(codec));
        push_plots(page, codec);
    }
    for (number, message) in failed(codec) {
        _ = writeln!(page, "<h3>{} fails</h3>", text(&message.title(number)));
        let failure = message.failure.as_deref().unwrap_or_default();
        _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", lines(failure));
    }
    peer_failures(codec).for_each(|line| _ = writeln!(page, "<p>{}</p>", text(&line)));
    *page += "</section>\n";
}

fn push_table(page: &mut String, table: &Table) {
    *page += "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Messages\"><table>\n";
    for (index, row) in table.lines().enumerate() {
        let mut cells = String::new();
        for (column, cell) in row.iter().enumerate() {
            _ = match (index, column) {
                (0, _) => write!(cells, "<th scope=\"col\">{}</th>", text(cell)),
                (_, 0) => write!(cells, "<th scope=\"row\">{}</th>", text(cell)),
                _ => write!(cells, "<td>{}</td>", text(cell)),
            };
        }
        _ = match index {
            0 => writeln!(page, "<thead><tr>{cells}</tr></thead>\n<tbody>"),
            _ => writeln!(page, "<tr>{cells}</tr>"),
        };
    }
    *page += "</tbody></table></div>\n";
}

fn push_plots(page: &mut String, codec: &CodecBench) {
    let mut times = Histogram::default();
    codec.messages.iter().for_each(|message| times.merge(&message.histogram));
    if !times.bars().is_empty() {
        *page += "<h3>Time of messages</h3>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Plot of times\">";
        *page += &plot::histogram(&times, "How many messages took how long. The table above has the quantiles.");
        *page += "</div>\n";
    }
    let mut fuel: Vec<_> = (1..).zip(&codec.messages).map(|(number, it)| (it.title(number), it.fuel)).collect();
    if fuel.len() > 1 {
        fuel.sort_by_key(|(_, fuel)| std::cmp::Reverse(*fuel));
        fuel.truncate(MESSAGES_MAX);
        *page += "<h3>Fuel of messages</h3>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Plot of fuel\">";
        *page +=
            &plot::bars(&fuel, "The fuel of each message, the most expensive first. The table above has the numbers.");
        *page += "</div>\n";
    }
    if !codec.lines.is_empty() {
        push_lines(page, &codec.lines);
    }
}

/// The most expensive lines, in their order.
fn push_lines(page: &mut String, all: &[LineFuel]) {
    let total = all.iter().map(|line| line.fuel).sum::<u64>().max(1);
    let mut by_fuel: Vec<&LineFuel> = all.iter().collect();
    by_fuel.sort_by_key(|line| std::cmp::Reverse(line.fuel));
    by_fuel.truncate(LINES_MAX);
    by_fuel.sort_by_key(|line| line.line);
    *page += "<h3>Fuel of lines</h3>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Fuel of lines\"><table>\n\
              <thead><tr><th scope=\"col\">Line</th><th scope=\"col\">Fuel</th><th scope=\"col\">Share</th>\
              <th scope=\"col\">Code</th></tr></thead>\n<tbody>\n";
    for LineFuel { line, text: code, fuel } in by_fuel {
        let percent = 100.0 * *fuel as f64 / total as f64;
        let code: String = code.chars().take(LINE_CHARS_MAX).collect();
        _ = writeln!(
            page,
            "<tr><th scope=\"row\">{line}</th><td>{fuel}</td><td><svg width=\"80\" height=\"10\" aria-hidden=\"true\">\
             <rect class=\"bar\" width=\"{:.1}\" height=\"10\"/></svg> {percent:.1}%</td><td><code>{}</code></td></tr>",
            0.8 * percent,
            text(&code)
        );
    }
    *page += "</tbody></table></div>\n";
}
