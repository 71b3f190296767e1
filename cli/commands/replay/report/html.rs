//! The report as one self-contained HTML page.

use std::{collections::BTreeMap, fmt::Write};

use replay::{Counts, Field, Report};

use super::{Summary, by_frequency, named, place, side};
use crate::html::escape;

const STYLE: &str = "body{font:14px/1.5 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;\
    background:#fff}\
    table{border-collapse:collapse;width:100%}td,th{padding:.2em .6em;text-align:left;border-bottom:1px solid #ddd;\
    vertical-align:top}td.n,th.n{text-align:right}code{white-space:pre-wrap;word-break:break-word}\
    .bar{display:flex;height:.8em;min-width:12em}.share{background:#58c;height:.8em}\
    .c0{background:#2a7}.c1{background:#d80}.c2{background:#e77}.c3{background:#7ad}.c4{background:#bbb}\
    @media(max-width:40em){table{display:block;overflow-x:auto}code{word-break:normal}}";

pub(in super::super) fn html(summary: &Summary<'_>) -> String {
    let Summary { source, codecs, started, ended, report } = summary;
    let codecs: Vec<_> = codecs.iter().map(|codec| escape(&codec.to_string()).to_string()).collect();
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Replay of stored uplinks</title><style>{STYLE}</style>\
         <main><h1>Replay of stored uplinks</h1><p>{} through {}, {started} to {ended}</p>",
        escape(source),
        codecs.join(", "),
    );
    counts(&mut page, report);
    days(&mut page, &report.days);
    changed(&mut page, report);
    failures(&mut page, "Newly failing", &report.newly_failing_by);
    failures(&mut page, "Still failing", &report.still_failing_by);
    decoded(&mut page, report);
    damage(&mut page, report);
    page.push_str("</main>");
    page
}

fn counts(page: &mut String, report: &Report) {
    // Writing to a string cannot fail.
    _ = write!(page, "<p>{} uplinks", report.counts.uplinks);
    for (number, (name, count)) in named(&report.counts).into_iter().enumerate() {
        _ = write!(page, " <span class=c{number}>&nbsp;{count} {name}&nbsp;</span>");
    }
    _ = write!(
        page,
        "<p>Not run: {} left out by the options, {} corrected later, {} without a codec, {} no uplinks, {} damaged. At \
         most {} fuel.",
        report.left_out, report.outdated, report.without_codec, report.others, report.damaged, report.fuel_max
    );
}

fn days(page: &mut String, days: &BTreeMap<replay::Day, Counts>) {
    if days.len() < 2 {
        return;
    }
    page.push_str("<h2>By day</h2><table><tr><th>Day<th class=n>Uplinks<th>Result");
    for (day, counts) in days {
        let bar: String = named(counts)
            .into_iter()
            .enumerate()
            .map(|(number, (name, count))| {
                format!("<div class=c{number} title=\"{count} {name}\" style=\"flex:{count}\"></div>")
            })
            .collect();
        _ = write!(page, "<tr><td>{day}<td class=n>{}<td><div class=bar>{bar}</div>", counts.uplinks);
    }
    page.push_str("</table>");
}

fn changed(page: &mut String, report: &Report) {
    if report.fields.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Changed</h2><table><tr><th>Field<th class=n>Uplinks<th>Of those that changed<th>Before<th>Now<th>Example",
    );
    for (path, field) in by_frequency(&report.fields) {
        let share = 100.0 * field.uplinks as f64 / report.counts.changed.max(1) as f64;
        _ = write!(
            page,
            "<tr><td><code>{}</code><td class=n>{}<td><div class=share style=\"width:{share:.1}%\"></div>\
             <td><code>{}</code><td><code>{}</code><td>{}",
            escape(path),
            field.uplinks,
            escape(side(field.example.old.as_ref())),
            escape(side(field.example.new.as_ref())),
            escape(&place(&field.example)),
        );
    }
    page.push_str("</table>");
}

fn failures(page: &mut String, title: &str, failures: &BTreeMap<String, Field>) {
    if failures.is_empty() {
        return;
    }
    _ = write!(page, "<h2>{title}</h2><table><tr><th>Reason<th class=n>Uplinks<th>Before<th>Example");
    for (reason, failure) in by_frequency(failures) {
        _ = write!(
            page,
            "<tr><td><code>{}</code><td class=n>{}<td><code>{}</code><td>{}",
            escape(reason),
            failure.uplinks,
            escape(side(failure.example.old.as_ref())),
            escape(&place(&failure.example)),
        );
    }
    page.push_str("</table>");
}

fn decoded(page: &mut String, report: &Report) {
    if report.newly_decoded_examples.is_empty() {
        return;
    }
    page.push_str("<h2>Newly decoded</h2><table><tr><th>Example<th>Now");
    for example in &report.newly_decoded_examples {
        let (place, now) = (place(example), side(example.new.as_ref()));
        _ = write!(page, "<tr><td>{}<td><code>{}</code>", escape(&place), escape(now));
    }
    page.push_str("</table>");
}

fn damage(page: &mut String, report: &Report) {
    if report.damage.is_empty() {
        return;
    }
    page.push_str("<h2>Not read</h2><table><tr><th>Place<th>Reason");
    for damage in &report.damage {
        _ = write!(page, "<tr><td>{}<td>{}", damage.place, escape(&damage.reason));
    }
    page.push_str("</table>");
}
