//! The report as text.

use std::fmt::Write;

use super::{Codec, Counts, Report};
use crate::{html::percent, terminal::sanitize};

/// Maximum number of codecs in the list; those with differences come first, then the slowest.
const LISTED_MAX: usize = 40;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}", line(&report.totals));
    for (id, codec) in listed(report).into_iter().take(LISTED_MAX) {
        let _ = writeln!(text, "\n{} ({})", sanitize(&codec.name), sanitize(id));
        let _ = writeln!(text, "  {}", line(&codec.counts));
        let share = percent(codec.fuel.max, report.fuel_max);
        let _ = writeln!(
            text,
            "  median {} µs, slowest {} µs; at most {} fuel, {share:.1}% of the limit",
            codec.microseconds.median, codec.microseconds.max, codec.fuel.max
        );
        for (cause, count) in &codec.causes {
            let _ = writeln!(text, "  {count:>6} × {cause}");
        }
        for example in &codec.examples {
            let side = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), sanitize);
            let path = if example.path.is_empty() { String::new() } else { format!("{}: ", sanitize(&example.path)) };
            let _ = writeln!(text, "         {path}there {}, here {}", side(&example.there), side(&example.here));
        }
    }
    text
}

/// Counts in one line, without those that are zero.
pub(super) fn line(counts: &Counts) -> String {
    let named = [
        (counts.equal, "equal"),
        (counts.different, "different"),
        (counts.failed_there, "failed there only"),
        (counts.failed_here, "failed here only"),
        (counts.failed_both, "failed in both"),
        (counts.only_here, "decoded here only"),
        (counts.without_codec, "without a codec"),
    ];
    let parts: Vec<_> =
        named.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    format!("{} messages: {}", counts.messages, if parts.is_empty() { "none yet".to_owned() } else { parts.join(", ") })
}

/// Codecs with differences first, then the slowest.
pub(super) fn listed(report: &Report) -> Vec<(&String, &Codec)> {
    let mut codecs: Vec<_> = report.codecs.iter().collect();
    codecs.sort_by_key(|(_, codec)| std::cmp::Reverse((codec.causes.values().sum::<u64>(), codec.fuel.max)));
    codecs
}
