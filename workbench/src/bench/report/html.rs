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
    report::format::html::{
        escape::{lines, text},
        page::{Page, share, table},
    },
};

/// Maximum number of messages, and of lines, in a plot: the most expensive ones.
const MESSAGES_MAX: usize = 30;
const LINES_MAX: usize = 40;
/// Characters of a line of code.
const LINE_CHARS_MAX: usize = 120;

pub(super) fn page(bench: &Bench) -> String {
    let mut page = Page::new("What payload functions cost");
    let messages: usize = bench.codecs.iter().map(|codec| codec.messages.len()).sum();
    page.summary += "<dl>\n";
    for (name, number) in
        [("Codecs", bench.codecs.len()), ("Messages", messages), ("Failures", bench.failures().count())]
    {
        _ = writeln!(page.summary, "<div><dt>{name}</dt><dd>{number}</dd></div>");
    }
    page.summary += "</dl>\n<p>Fuel is exact, and the same on every machine. Times are of this one; the interval contains \
                     the true median with a probability of 95%.</p>\n";
    for (index, codec) in bench.codecs.iter().enumerate() {
        page.section(&format!("codec-{index}"), &codec.id, &section(codec));
    }
    page.finish(&bench.airlock)
}

fn section(codec: &CodecBench) -> String {
    let mut content = String::new();
    let page = &mut content;
    if let Some(failure) = &codec.failure {
        _ = writeln!(page, "<p>It cannot be loaded.</p>\n<pre tabindex=\"0\">{}</pre>", lines(failure));
    }
    if let Some(loading) = &codec.loading {
        _ = writeln!(page, "<p>Loading: {}.</p>", text(&describe(loading)));
    }
    if !codec.messages.is_empty() {
        *page += &messages_table(&messages(codec));
        push_plots(page, codec);
    }
    for (number, message) in failed(codec) {
        _ = writeln!(page, "<h3>{} fails</h3>", text(&message.title(number)));
        let failure = message.failure.as_deref().unwrap_or_default();
        _ = writeln!(page, "<pre tabindex=\"0\">{}</pre>", lines(failure));
    }
    peer_failures(codec).for_each(|line| _ = writeln!(page, "<p>{}</p>", text(&line)));
    content
}

fn messages_table(messages: &Table) -> String {
    let mut rows = messages.lines();
    let names = rows.next().unwrap_or_default();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    table("Messages", &names, rows.map(|row| row.iter().map(|cell| text(cell)).collect()))
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
    let row = |line: &&LineFuel| {
        let percent = 100.0 * line.fuel as f64 / total as f64;
        let code: String = line.text.chars().take(LINE_CHARS_MAX).collect();
        let code = format!("<code>{}</code>", text(&code));
        vec![line.line.to_string(), line.fuel.to_string(), share(percent), code]
    };
    *page += "<h3>Fuel of lines</h3>\n";
    *page += &table("Fuel of lines", &["Line", "Fuel", "Share", "Code"], by_fuel.iter().map(row));
}
