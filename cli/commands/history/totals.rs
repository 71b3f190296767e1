//! Totals of all uplinks that were decoded again.

mod html;

use std::{cmp::Reverse, iter};

use anyhow::ensure;
use api::rest::handler::{ChangedField, DecodeReport, LowerLimit, Verdicts};
use askama::Template;
use serde_json::value::RawValue;
use types::AppId;

use super::{check_all_read, check_taken, left_out, say_refused, warn_unreadable, work::Sum};
use crate::{
    output::{Cell, Output, Table},
    terminal::{sanitize, say, warn},
};

/// Totals of all uplinks that were decoded again, added up from reports.
#[derive(Debug, Default)]
pub(crate) struct Totals(DecodeReport);

impl Sum<DecodeReport> for Totals {
    fn add(&mut self, report: DecodeReport) {
        self.0.add(report);
    }

    fn examined(&self) -> u64 {
        self.0.examined
    }

    fn is_done(&self) -> bool {
        self.0.done
    }
}

impl Totals {
    /// An error if any uplink newly fails, somebody did not take a correction, or files could not be read.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let count = self.0.verdicts.newly_failing;
        let text = if count == 1 { "uplink fails that was" } else { "uplinks fail that were" };
        ensure!(count == 0, "{count} {text} decoded before");
        check_taken(self.0.refused)?;
        check_all_read(self.0.unreadable_files.len())
    }

    /// An error if the same functions gave something else, or files could not be read.
    pub(crate) fn check_repeated(&self) -> anyhow::Result<()> {
        let Verdicts { changed, newly_failing, newly_decoded, .. } = self.0.verdicts;
        let count = changed + newly_failing + newly_decoded;
        let examined = self.0.examined;
        ensure!(count == 0, "{count} of {examined} uplinks gave something else than before");
        let gone = self.0.not_repeatable;
        ensure!(
            gone == 0 || gone < examined,
            "nothing was verified: no functions ran on these uplinks, their functions or limits are gone, or a limit \
             is lower now"
        );
        check_all_read(self.0.unreadable_files.len())
    }

    /// Prints them for people, or as an object for programs.
    pub(crate) fn print(&self, output: &Output) -> anyhow::Result<()> {
        if !output.is_table() {
            return output.object(serde_json::to_value(&self.0)?);
        }
        say(self.summary())?;
        warn_unreadable(&self.0.unreadable_files)?;
        if self.0.is_cut {
            warn("there are too many uplinks for one run: only the newest were looked at, so devices may be missing")?;
        }
        self.unchecked().into_iter().chain(self.lower_limits()).try_for_each(|line| say(sanitize(&line)))?;
        if !self.0.fields.is_empty() {
            say("")?;
            output.table(self.fields(), "")?;
        }
        for (reason, failure) in &self.0.failures {
            say(format_args!(
                "\n{} × {}\n  such as {}, {}",
                failure.count,
                sanitize(reason),
                failure.dev_id,
                failure.id
            ))?;
        }
        say_refused(&self.0.receivers)
    }

    /// One line with the counts that are not zero, and one with the fuel.
    fn summary(&self) -> String {
        let DecodeReport { examined, fuel_before, fuel_after, .. } = self.0;
        let named = [
            (self.0.verdicts.equal, "equal"),
            (self.0.verdicts.already_corrected, "already corrected"),
            (self.0.verdicts.changed, "changed"),
            (self.0.verdicts.newly_decoded, "newly decoded"),
            (self.0.verdicts.newly_failing, "newly failing"),
            (self.0.verdicts.still_failing, "still failing"),
            (
                self.0.not_repeatable.saturating_sub(self.0.limited),
                "on which no functions ran or whose functions or limits are gone",
            ),
            (self.0.limited, "with a limit that is lower now"),
            (self.0.written, "kept as corrections"),
            (self.0.published, "published"),
            (self.0.refused, "not taken by all who want them"),
            (self.0.unwanted, "not published, because nobody receives them"),
            (self.0.not_published, "not published, because their device is gone"),
        ];
        let counts: Vec<_> =
            named.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
        let counts = if counts.is_empty() { "nothing to decode".to_owned() } else { counts.join(", ") };
        let ran = examined - self.0.not_repeatable;
        let fuel = match ran {
            0 => String::new(),
            _ => format!("\nFuel of each on average: {} before, {} now", fuel_before / ran, fuel_after / ran),
        };
        format!("{examined} {}: {counts}{fuel}", if examined == 1 { "uplink" } else { "uplinks" })
    }

    /// Says how many files have no checksums, so that nothing tells whether they are as they were written.
    fn unchecked(&self) -> Option<String> {
        let files = &self.0.unchecked_files;
        let (count, rows) = (files.len(), files.values().sum::<u64>());
        let noun = if count == 1 { "file" } else { "files" };
        (count > 0).then(|| {
            format!(
                "{count} {noun} of history with {rows} rows without checksums: nothing shows whether they have changed"
            )
        })
    }

    /// A line for each limit that is lower now than when uplinks came.
    fn lower_limits(&self) -> impl Iterator<Item = String> {
        self.0.lower_limits.iter().map(|(name, LowerLimit { count, then, now })| {
            let uplinks = if *count == 1 { "uplink" } else { "uplinks" };
            format!("{count} {uplinks} had a higher limit `{name}`: {then} then, {now} now")
        })
    }

    /// Tabulates the fields that changed, the most frequent first, each with an example.
    fn fields(&self) -> Table {
        let columns =
            [("field", "Field"), ("uplinks", "Uplinks"), ("before", "Before"), ("after", "After"), ("id", "Example")];
        let rows = by_frequency(&self.0).into_iter().map(|(path, field)| {
            let example = &field.example;
            [
                path.into(),
                Cell::new(field.count.to_string(), field.count),
                side(example.before.as_deref()).into(),
                side(example.after.as_deref()).into(),
                example.id.as_str().into(),
            ]
        });
        Table::new(columns, rows)
    }

    /// The same as a page of HTML.
    pub(crate) fn html(&self, app_id: &AppId) -> askama::Result<String> {
        let left_out = left_out(self.0.unreadable_files.len());
        let files = left_out.into_iter().chain(self.unchecked());
        let summary: Vec<_> = iter::once(self.summary()).chain(files).chain(self.lower_limits()).collect();
        html::Page::new(app_id, &summary.join("\n"), &self.0).render()
    }
}

/// The fields that changed, the most frequent first.
fn by_frequency(report: &DecodeReport) -> Vec<(&str, &ChangedField)> {
    let mut fields: Vec<_> = report.fields.iter().map(|(path, field)| (path.as_str(), field)).collect();
    fields.sort_by_key(|(_, field)| Reverse(field.count));
    fields
}

/// A value in an example, or a dash for none.
fn side(value: Option<&RawValue>) -> &str {
    value.map_or("-", RawValue::get)
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use api::rest::handler::{FieldExample, NewFailure};

    use super::*;
    use crate::exit;

    #[test]
    fn limits_that_are_lower_now_are_named_on_the_terminal_and_in_the_page() {
        let fuel = LowerLimit { count: 1, then: 200_000_000, now: 300_000 };
        let lower_limits = [("fuel".to_owned(), fuel)].into();
        let report =
            DecodeReport { examined: 1, not_repeatable: 1, limited: 1, lower_limits, ..DecodeReport::default() };
        let totals = Totals(report);
        let line = "1 uplink had a higher limit `fuel`: 200000000 then, 300000 now";
        assert_eq!(totals.lower_limits().collect::<Vec<_>>(), [line]);
        assert!(totals.html(&"my-app".parse().unwrap()).unwrap().contains(line));
    }

    #[test]
    fn uplinks_that_did_not_run_are_no_success_and_counted_with_all_reasons() {
        let totals = Totals(DecodeReport { examined: 1, not_repeatable: 1, ..DecodeReport::default() });
        let count = "1 uplink: 1 on which no functions ran or whose functions or limits are gone";
        assert_eq!(totals.summary(), count);
        assert!(totals.check_repeated().unwrap_err().to_string().contains("no functions ran on these uplinks"));
    }

    #[test]
    fn files_that_are_left_out_are_no_success_and_counted_in_the_page() {
        let unreadable_files = ["a".to_owned(), "b".to_owned()].into();
        let totals = Totals(DecodeReport { unreadable_files, ..DecodeReport::default() });
        let text = "2 files of history cannot be read: their records are missing";
        for checked in [totals.check(), totals.check_repeated()] {
            let error = checked.unwrap_err();
            assert_eq!((error.to_string().as_str(), exit::code(&error)), (text, ExitCode::from(5)));
        }
        assert!(totals.html(&"my-app".parse().unwrap()).unwrap().contains(text));
    }

    #[test]
    fn the_page_has_what_changed_by_day_and_field_without_markup_of_others() {
        let after = Some(RawValue::from_string(r#""<b>""#.to_owned()).unwrap());
        let example = FieldExample { id: "f1".to_owned(), dev_id: "my-device".to_owned(), before: None, after };
        let failure = NewFailure { count: 1, id: "f2".to_owned(), dev_id: "other-device".to_owned() };
        let day = |changed, newly_failing| Verdicts { changed, newly_failing, ..Verdicts::default() };
        let report = DecodeReport {
            examined: 4,
            verdicts: day(3, 1),
            days: [("2026-11-20".to_owned(), day(3, 0)), ("2026-11-21".to_owned(), day(0, 1))].into(),
            fields: [("fields.<i>".to_owned(), ChangedField { count: 3, example })].into(),
            failures: [("<u>".to_owned(), failure)].into(),
            ..DecodeReport::default()
        };
        let page = Totals(report).html(&"my-app".parse().unwrap()).unwrap();
        for text in [
            "<h1>Uplinks of my-app, decoded again</h1>",
            "<h2>By day</h2>",
            "0 equal, 0 already corrected, 3 changed, 0 newly decoded, 0 newly failing, 0 still failing",
            "width:33.3%",
            "fields.&#60;i&#62;",
            "75.0%",
            "<code>-</code>",
            "<code>&#34;&#60;b&#62;&#34;</code>",
            "<code>&#60;u&#62;</code>",
        ] {
            assert!(page.contains(text), "no {text}: {page}");
        }
        assert!(!["<b>", "<i>", "<u>"].iter().any(|markup| page.contains(markup)), "{page}");
    }

    #[test]
    fn files_without_checksums_are_counted_once_with_their_rows() {
        let mut totals = Totals::default();
        for name in ["a", "b", "a"] {
            let unchecked_files = [(name.to_owned(), 3)].into();
            totals.add(DecodeReport { unchecked_files, ..DecodeReport::default() });
        }
        let line = "2 files of history with 6 rows without checksums: nothing shows whether they have changed";
        assert_eq!(totals.unchecked().as_deref(), Some(line));
        assert!(totals.html(&"my-app".parse().unwrap()).unwrap().contains(line));
        totals.check_repeated().unwrap();
        assert_eq!(Totals::default().unchecked(), None);
    }

    #[test]
    fn corrections_that_nobody_receives_are_no_failure_and_not_published() {
        let mut totals = Totals::default();
        for (published, unwanted) in [(2, 0), (0, 1)] {
            let verdicts = Verdicts { changed: published + unwanted, ..Verdicts::default() };
            let (examined, written) = (verdicts.changed, verdicts.changed);
            totals.add(DecodeReport { examined, verdicts, written, published, unwanted, ..DecodeReport::default() });
        }
        let counts = "3 kept as corrections, 2 published, 1 not published, because nobody receives them\n";
        assert!(totals.summary().starts_with(&format!("3 uplinks: 3 changed, {counts}")), "{}", totals.summary());
        totals.check().unwrap();
    }
}
