//! The report as text.

use std::fmt::Write;

use replay::Report;

use super::{Summary, by_frequency, named, place, side};
use crate::terminal::sanitize;

/// Maximum number of fields, and of failures, in the list.
const LISTED_MAX: usize = 40;

pub(in super::super) fn text(summary: &Summary<'_>) -> String {
    let report = &summary.report;
    let parts = named(&report.counts).map(|(_, name, count)| format!("{count} {name}")).join(", ");
    // Writing to a string cannot fail.
    let mut text = String::new();
    _ = writeln!(text, "{} uplinks: {parts}", report.counts.uplinks);
    rest(&mut text, report);
    if report.updates.written > 0 {
        _ = writeln!(text, "{} rows in the SQL file", report.updates.written);
    }
    if report.updates.not_storable > 0 {
        _ = writeln!(text, "{} rows not in it: PostgreSQL cannot store their objects", report.updates.not_storable);
    }
    changed(&mut text, report);
    for (title, failures) in [("Newly failing", &report.newly_failing_by), ("Still failing", &report.still_failing_by)]
    {
        heading(&mut text, title, failures.is_empty());
        for (reason, failure) in by_frequency(failures).into_iter().take(LISTED_MAX) {
            _ = writeln!(text, "  {:>8}  {}", failure.uplinks, sanitize(reason));
            _ = writeln!(text, "            {}", sanitize(&place(&failure.example)));
        }
    }
    heading(&mut text, "Newly decoded", report.newly_decoded_examples.is_empty());
    for example in &report.newly_decoded_examples {
        _ = writeln!(text, "  {}: {}", sanitize(&place(example)), sanitize(side(example.new.as_ref())));
    }
    heading(&mut text, "Without a codec", report.profiles_without_codec.is_empty());
    for (profile, uplinks) in report.profiles_without_codec.iter().take(LISTED_MAX) {
        let profile = if profile.is_empty() { "no profile" } else { profile };
        _ = writeln!(text, "  {uplinks:>8}  {}", sanitize(profile));
    }
    heading(&mut text, "Not read", report.damage.is_empty());
    for damage in &report.damage {
        _ = writeln!(text, "  {}: {}", damage.place, sanitize(&damage.reason));
    }
    text
}

/// Writes the counts of messages that did not run.
fn rest(text: &mut String, report: &Report) {
    for (count, what) in [
        (report.left_out, "left out by the options"),
        (report.outdated, "corrected later, of which only the newest ran"),
        (report.without_codec, "without a codec for their profile"),
        (report.others, "no uplinks, such as joins"),
        (report.damaged, "damaged, and skipped"),
    ] {
        if count > 0 {
            _ = writeln!(text, "{count} {what}");
        }
    }
}

fn changed(text: &mut String, report: &Report) {
    heading(text, "Changed", report.fields.is_empty());
    for (path, field) in by_frequency(&report.fields).into_iter().take(LISTED_MAX) {
        let (old, new) = (side(field.example.old.as_ref()), side(field.example.new.as_ref()));
        _ = writeln!(
            text,
            "  {:>8}  {}: {} before, {} now",
            field.uplinks,
            sanitize(path),
            sanitize(old),
            sanitize(new)
        );
        _ = writeln!(text, "            {}", sanitize(&place(&field.example)));
    }
}

fn heading(text: &mut String, title: &str, is_empty: bool) {
    if !is_empty {
        _ = writeln!(text, "\n{title}");
    }
}
