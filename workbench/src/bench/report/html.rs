//! Measurements as an HTML page that stands alone: it loads nothing, and needs no script.

use std::cmp::Reverse;

use askama::Template;
use runtime::sanitize;

use super::rows::{describe, failed, messages, peer_failures};
use crate::{
    bench::{
        figures::{Bench, CodecBench, Loading, MessageBench},
        plot::{Bar, bars},
        statistics::Histogram,
    },
    report::profile::coverage::shown,
};

/// Maximum number of messages, and of lines, in a plot: the most expensive ones.
const MESSAGES_MAX: usize = 30;
const LINES_MAX: usize = 40;
/// Characters of a line of code.
const LINE_CHARS_MAX: usize = 120;

#[derive(Template)]
#[template(path = "bench.html")]
struct Page<'a> {
    title: &'static str,
    bench: &'a Bench,
    counts: [(&'static str, usize); 3],
}

/// The fuel of a line.
struct Line {
    number: u32,
    fuel: u64,
    percent: f64,
    share: String,
    code: String,
}

pub(super) fn page(bench: &Bench) -> String {
    let messages = bench.codecs.iter().map(|codec| codec.messages.len()).sum();
    let counts = [("Codecs", bench.codecs.len()), ("Messages", messages), ("Failures", bench.failures().count())];
    Page { title: "What payload functions cost", bench, counts }.to_string()
}

impl Page<'_> {
    /// The ids of the sections and their titles.
    fn sections(&self) -> Vec<(String, String)> {
        let section = |(index, codec): (usize, &CodecBench)| (format!("codec-{index}"), sanitize(&codec.id));
        self.bench.codecs.iter().enumerate().map(section).collect()
    }

    fn loading(&self, loading: &Loading) -> String {
        describe(loading)
    }

    /// The names of the columns, none of which is shown as numbers, and the rows.
    fn messages(&self, codec: &CodecBench) -> (Vec<(String, bool)>, Vec<Vec<String>>) {
        let table = messages(codec);
        let mut rows = table.lines();
        let names = rows.next().unwrap_or_default();
        (names.into_iter().map(|name| (name, false)).collect(), rows.collect())
    }

    fn times(&self, codec: &CodecBench) -> Vec<Bar> {
        let mut times = Histogram::default();
        codec.messages.iter().for_each(|message| times.merge(&message.histogram));
        bars(&times)
    }

    /// The most expensive messages, with their fuel, and that in percent of the most.
    fn fuel(&self, codec: &CodecBench) -> Vec<(String, u64, f64)> {
        let mut messages: Vec<(usize, &MessageBench)> = (1..).zip(&codec.messages).collect();
        messages.sort_by_key(|(_, message)| Reverse(message.fuel));
        let most = messages.first().map_or(1, |(_, message)| message.fuel.max(1));
        let percent = |fuel: u64| 100.0 * fuel as f64 / most as f64;
        let bar = |(number, it): (usize, &MessageBench)| (sanitize(&it.title(number)), it.fuel, percent(it.fuel));
        messages.into_iter().take(MESSAGES_MAX).map(bar).collect()
    }

    /// The most expensive lines, in their order.
    fn lines(&self, codec: &CodecBench) -> Vec<Line> {
        let total = codec.lines.iter().map(|line| line.fuel).sum::<u64>().max(1);
        let mut by_fuel: Vec<_> = codec.lines.iter().collect();
        by_fuel.sort_by_key(|line| Reverse(line.fuel));
        by_fuel.truncate(LINES_MAX);
        by_fuel.sort_by_key(|line| line.line);
        let lines = by_fuel.into_iter().map(|line| {
            let percent = 100.0 * line.fuel as f64 / total as f64;
            let code: String = line.text.chars().take(LINE_CHARS_MAX).collect();
            Line { number: line.line, fuel: line.fuel, percent, share: shown(percent), code: sanitize(&code) }
        });
        lines.collect()
    }

    /// The messages that fail, and why.
    fn failed<'c>(&self, codec: &'c CodecBench) -> Vec<(String, &'c str)> {
        let reason = |message: &'c MessageBench| message.failure.as_deref().unwrap_or_default();
        failed(codec).map(|(number, message)| (sanitize(&message.title(number)), reason(message))).collect()
    }

    fn peer_failures(&self, codec: &CodecBench) -> Vec<String> {
        peer_failures(codec).map(|line| sanitize(&line)).collect()
    }
}
