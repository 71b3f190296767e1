//! The totals of uplinks that were decoded again, as one self-contained HTML page.

use api::rest::handler::{ChangedField, DecodeReport, Verdicts};
use askama::Template;
use types::AppId;

use super::by_frequency;
use crate::html::{Part, percent};

#[derive(Template)]
#[template(path = "history_decode.html", config = "cli/askama.toml")]
pub(super) struct Page<'a> {
    title: String,
    summary: &'a str,
    report: &'a DecodeReport,
    verdicts: [Part; 6],
    days: Vec<Day<'a>>,
    /// Each with the share of uplinks in which it has changed, in percent.
    fields: Vec<(&'a str, &'a ChangedField, f64)>,
}

struct Day<'a> {
    date: &'a str,
    uplinks: u64,
    /// Of the busiest day.
    percent: f64,
    verdicts: [Part; 6],
}

impl<'a> Page<'a> {
    pub(super) fn new(app_id: &AppId, summary: &'a str, report: &'a DecodeReport) -> Self {
        let share = |(path, field): (&'a str, &'a ChangedField)| (path, field, percent(field.count, report.examined));
        Self {
            title: format!("Uplinks of {app_id}, decoded again"),
            summary,
            report,
            verdicts: verdicts(&report.verdicts),
            days: days(report),
            fields: by_frequency(report).into_iter().map(share).collect(),
        }
    }
}

fn verdicts(of: &Verdicts) -> [Part; 6] {
    [
        ("equal", "equal", of.equal),
        ("corrected", "already corrected", of.already_corrected),
        ("changed", "changed", of.changed),
        ("decoded", "newly decoded", of.newly_decoded),
        ("failing", "newly failing", of.newly_failing),
        ("other", "still failing", of.still_failing),
    ]
}

/// The days, unless there is only one, or nothing to compare.
fn days(report: &DecodeReport) -> Vec<Day<'_>> {
    let sum = |day: &Verdicts| verdicts(day).iter().map(|(.., count)| count).sum::<u64>();
    let most = report.days.values().map(sum).max().unwrap_or_default();
    if most == 0 || report.days.len() < 2 {
        return Vec::new();
    }
    let days = report.days.iter().map(|(date, day)| {
        let (uplinks, verdicts) = (sum(day), verdicts(day));
        Day { date, uplinks, percent: percent(uplinks, most), verdicts }
    });
    days.collect()
}
