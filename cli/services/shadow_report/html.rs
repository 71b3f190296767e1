//! The report as one self-contained HTML page.

use std::fmt::Write;

use super::{Codec, Report, text};
use crate::html::escape;

const STYLE: &str = "body{font:14px/1.5 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;\
    background:#fff}\
    table{border-collapse:collapse;width:100%}td,th{padding:.2em .6em;text-align:left;border-bottom:1px solid #ddd;\
    vertical-align:top}td.n{text-align:right}code{white-space:pre-wrap;word-break:break-word}\
    .bar{display:flex;height:.8em;min-width:8em}.equal{background:#2a7}.different{background:#d80}\
    .there{background:#7ad}.here{background:#e77}.other{background:#bbb}.cost{background:#58c;height:.8em}\
    @media(max-width:40em){table{display:block;overflow-x:auto}code{word-break:normal}}";

/// The page.
pub(super) fn html(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Shadow run of Airlock</title><style>{STYLE}</style>\
         <main><h1>Shadow run of Airlock</h1><p>{} to {}</p><p>{}</p>",
        report.started,
        report.ended,
        escape(&text::line(&report.totals)),
    );
    page.push_str(
        "<p>Bars: <span class=equal>&nbsp;equal&nbsp;</span> <span class=different>&nbsp;different&nbsp;</span> \
         <span class=there>&nbsp;failed there only&nbsp;</span> <span class=here>&nbsp;failed here only&nbsp;</span> \
         <span class=other>&nbsp;other&nbsp;</span></p><table><tr><th>Device profile<th>Messages<th>Result\
         <th>Median µs<th>Slowest µs<th>Most fuel, of the limit",
    );
    let codecs = text::listed(report);
    for (id, codec) in &codecs {
        row(&mut page, id, codec, report.fuel_max);
    }
    page.push_str("</table><h2>Differences and failures</h2>");
    for (id, codec) in codecs.iter().filter(|(_, codec)| !codec.examples.is_empty()) {
        examples(&mut page, id, codec);
    }
    page.push_str("</main>");
    page
}

fn row(page: &mut String, id: &str, codec: &Codec, fuel_max: u64) {
    let counts = &codec.counts;
    let other = counts.failed_both + counts.only_here + counts.without_codec;
    let parts = [
        ("equal", counts.equal),
        ("different", counts.different),
        ("there", counts.failed_there),
        ("here", counts.failed_here),
        ("other", other),
    ];
    let bars: String =
        parts.iter().map(|(class, count)| format!("<div class={class} style=\"flex:{count}\"></div>")).collect();
    let share = 100.0 * codec.fuel.max as f64 / fuel_max.max(1) as f64;
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<tr><td title=\"{}\">{}<td class=n>{}<td title=\"{}\"><div class=bar>{bars}</div><td class=n>{}<td class=n>{}\
         <td><div class=cost style=\"width:{share:.1}%\"></div>{} ({share:.1}%)",
        escape(id),
        escape(&codec.name),
        counts.messages,
        escape(&text::line(counts)),
        codec.microseconds.median,
        codec.microseconds.max,
        codec.fuel.max,
    );
}

fn examples(page: &mut String, id: &str, codec: &Codec) {
    let _ = write!(
        page,
        "<h3 title=\"{}\">{}</h3><table><tr><th>Likely cause<th>Path<th>There<th>Here",
        escape(id),
        escape(&codec.name)
    );
    for example in &codec.examples {
        let side = |value: &Option<String>| value.as_deref().map(escape).unwrap_or_default();
        let _ = write!(
            page,
            "<tr><td>{}<td><code>{}</code><td><code>{}</code><td><code>{}</code>",
            escape(example.cause),
            escape(&example.path),
            side(&example.there),
            side(&example.here),
        );
    }
    page.push_str("</table>");
}
