//! The totals of uplinks that were decoded again, as one self-contained HTML page.

use std::{cmp::Reverse, fmt::Write};

use api::rest::handler::{DecodeReport, Verdicts};
use types::AppId;

use super::side;
use crate::html::escape;

const STYLE: &str = "body{font:14px/1.5 sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;\
    background:#fff}table{border-collapse:collapse;width:100%}td,th{padding:.2em .6em;text-align:left;\
    border-bottom:1px solid #ddd;vertical-align:top}td.n,th.n{text-align:right}\
    code{white-space:pre-wrap;word-break:break-word}.bar{display:flex;height:1.2em}\
    .share{background:#58c;height:.8em}.equal{background:#2a7}.corrected{background:#ac6}.changed{background:#d80}.decoded{background:#7ad}\
    .failing{background:#e77}.other{background:#bbb}\
    @media(max-width:40em){table{display:block;overflow-x:auto}code{word-break:normal}}";

pub(super) fn html(report: &DecodeReport, app_id: &AppId, summary: &str) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>Uplinks of {app_id}, decoded again</title><style>{STYLE}</style><main>\
         <h1>Uplinks of {app_id}, decoded again</h1><p>{}</p>",
        escape(summary).replace('\n', "<br>"),
    );
    _ = write!(page, "{}<p>{}", bar(&report.verdicts), key());
    days(&mut page, report);
    fields(&mut page, report);
    failures(&mut page, report);
    page.push_str("</main>");
    page
}

/// Verdicts on uplinks, each with its class, name and number.
fn verdicts(of: &Verdicts) -> [(&'static str, &'static str, u64); 6] {
    [
        ("equal", "equal", of.equal),
        ("corrected", "already corrected", of.already_corrected),
        ("changed", "changed", of.changed),
        ("decoded", "newly decoded", of.newly_decoded),
        ("failing", "newly failing", of.newly_failing),
        ("other", "still failing", of.still_failing),
    ]
}

/// One bar with a part for each verdict.
fn bar(of: &Verdicts) -> String {
    let part =
        |(class, name, count)| format!("<div class={class} style=\"flex:{count}\" title=\"{count} {name}\"></div>");
    format!("<div class=bar>{}</div>", verdicts(of).into_iter().map(part).collect::<String>())
}

/// The colours of the bars.
fn key() -> String {
    let name = |(class, name, _)| format!("<span class={class}>&nbsp;{name}&nbsp;</span> ");
    verdicts(&Verdicts::default()).into_iter().map(name).collect()
}

/// A bar for each day, as long as its share of the busiest one.
fn days(page: &mut String, report: &DecodeReport) {
    let count = |day: &Verdicts| verdicts(day).iter().map(|(_, _, count)| count).sum::<u64>();
    let Some(most) = report.days.values().map(count).max().filter(|most| *most > 0 && report.days.len() > 1) else {
        return;
    };
    page.push_str("<h2>By day</h2><table><tr><th>Day<th class=n>Uplinks<th>Result");
    for (date, day) in &report.days {
        let (count, date) = (count(day), escape(date));
        let width = 100.0 * count as f64 / most as f64;
        // Writing to a string cannot fail.
        _ = write!(page, "<tr><td>{date}<td class=n>{count}<td><div style=\"width:{width:.1}%\">{}</div>", bar(day));
    }
    page.push_str("</table>");
}

fn fields(page: &mut String, report: &DecodeReport) {
    if report.fields.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Changed fields</h2><table><tr><th>Field<th class=n>Uplinks<th>Share<th>Before<th>After<th>Device\
         <th>Record",
    );
    let mut fields: Vec<_> = report.fields.iter().collect();
    fields.sort_by_key(|(_, field)| Reverse(field.count));
    for (path, field) in fields {
        let share = 100.0 * field.count as f64 / report.examined.max(1) as f64;
        let example = &field.example;
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "<tr><td>{}<td class=n>{}<td><div class=share style=\"width:{share:.1}%\"></div>{share:.1}%\
             <td><code>{}</code><td><code>{}</code><td>{}<td>{}",
            escape(path),
            field.count,
            escape(side(example.before.as_deref())),
            escape(side(example.after.as_deref())),
            escape(&example.dev_id),
            escape(&example.id),
        );
    }
    page.push_str("</table>");
}

fn failures(page: &mut String, report: &DecodeReport) {
    if report.failures.is_empty() {
        return;
    }
    page.push_str("<h2>New failures</h2><table><tr><th class=n>Uplinks<th>Reason<th>Device<th>Record");
    for (reason, failure) in &report.failures {
        let (reason, dev_id, id) = (escape(reason), escape(&failure.dev_id), escape(&failure.id));
        // Writing to a string cannot fail.
        let _ = write!(page, "<tr><td class=n>{}<td><code>{reason}</code><td>{dev_id}<td>{id}", failure.count);
    }
    page.push_str("</table>");
}
