//! Results of the live functions for a message of the past, beside the stored ones.

use std::time::Duration;

use api::{history::Record, version::Version};
use client::handler::HandlerClient;
use similar::TextDiff;

use crate::{
    Result,
    functions::trial::{self, Trial, Verdict},
    site::{
        functions,
        page::{grouped, pretty},
        viewer::InApplication,
    },
};

/// Maximum time for finding the difference; then it is larger than it would have to be.
const DIFF_TIME_MAX: Duration = Duration::from_millis(500);
/// Number of equal lines that are shown around a difference.
const LINES_AROUND: usize = 2;

/// The result of the live functions, and the stored one.
pub(super) struct Rerun {
    /// The number of the live version; zero if there is none.
    pub(super) version: u32,
    pub(super) verdict: Verdict,
    /// The stored fields, or why there are none.
    pub(super) before: String,
    /// The fields now, or why there are none.
    pub(super) now: String,
    /// The lines that differ; empty if the results are equal.
    pub(super) diff: String,
    /// The fuel that the functions used; none if one of them failed.
    pub(super) fuel: Option<String>,
    /// True if the functions that ran then made something else of the same input.
    pub(super) is_unexplained: bool,
}

impl Rerun {
    /// Runs the live functions on an uplink.
    pub(super) async fn of(request: &InApplication, handler: &HandlerClient, record: Record) -> Result<Self> {
        let mut live = functions::live(request, handler).await?;
        let functions = live.functions.take().unwrap_or_default();
        Ok(Self::new(trial::again(handler, &functions, record).await?, &live))
    }

    fn new(Trial { record, before, now, verdict }: Trial, live: &Version) -> Self {
        let fuel = now.fuel;
        let is_other = matches!(verdict, Verdict::Changed | Verdict::NewlyDecoded | Verdict::NewlyFailing)
            || fuel.is_some_and(|fuel| fuel != record.fuel);
        let did_run = !record.functions.is_empty() && record.functions == live.hash;
        let (before, now) = (pretty(&before.text), pretty(&now.text));
        // A failure now has its line of the source below it, which a stored one has not.
        let fails_alike = verdict == Verdict::StillFailing && now.starts_with(&before);
        let is_same = verdict == Verdict::Equal || before == now || fails_alike;
        let diff = if is_same { String::new() } else { diff(&before, &now) };
        Self {
            version: live.number,
            verdict,
            before,
            now,
            diff,
            fuel: fuel.map(grouped),
            is_unexplained: did_run && is_other,
        }
    }
}

fn diff(before: &str, now: &str) -> String {
    let (before, now) = (format!("{before}\n"), format!("{now}\n"));
    let compared = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(before.as_str(), now.as_str());
    compared.unified_diff().context_radius(LINES_AROUND).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::trial::TrialResult;

    fn made(text: &str, fuel: Option<u64>) -> TrialResult {
        TrialResult { text: text.to_owned(), fuel, ..TrialResult::default() }
    }

    fn rerun(fields: &str, now: &str, verdict: Verdict) -> Rerun {
        let (before, now) = (made(fields, None), made(now, Some(7)));
        Rerun::new(Trial { record: Record::default(), before, now, verdict }, &Version::default())
    }

    #[test]
    fn only_what_differs_is_in_the_difference() {
        let changed = rerun(r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#, Verdict::Changed);
        assert!(changed.diff.contains("\n-  \"b\": 2\n+  \"b\": 3\n"), "{}", changed.diff);
        assert!(changed.diff.contains("\n   \"a\": 1,\n") && !changed.diff.contains("No newline"), "{}", changed.diff);
        assert_eq!(rerun(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, Verdict::Equal).diff, "");
        let (stored, now) = ("the decoder failed (line 1): no", "the decoder failed (line 1): no\n1 | x\n  | ^");
        assert_eq!(rerun(stored, now, Verdict::StillFailing).diff, "");
        assert_ne!(rerun("the decoder used up its fuel", now, Verdict::StillFailing).diff, "");
    }

    #[test]
    fn only_the_functions_that_ran_owe_an_explanation() {
        let is_unexplained = |functions: &str, fuel, verdict| {
            let record = Record { functions: functions.to_owned(), fuel: 7, ..Record::default() };
            let live = Version { hash: "aa".to_owned(), ..Version::default() };
            let (before, now) = (made("{}", None), made("{}", fuel));
            Rerun::new(Trial { record, before, now, verdict }, &live).is_unexplained
        };
        for (functions, fuel, verdict, expected) in [
            ("aa", Some(7), Verdict::Equal, false),
            ("aa", Some(8), Verdict::Equal, true),
            ("aa", Some(7), Verdict::Changed, true),
            ("aa", None, Verdict::NewlyFailing, true),
            ("aa", None, Verdict::StillFailing, false),
            ("bb", Some(8), Verdict::Changed, false),
            ("", Some(0), Verdict::Changed, false),
        ] {
            assert_eq!(is_unexplained(functions, fuel, verdict), expected, "{functions} {fuel:?} {verdict:?}");
        }
    }
}
