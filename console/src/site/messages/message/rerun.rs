//! What the live functions make of a message of the past, beside what is stored.

use std::time::Duration;

use api::history::Record;
use client::handler::HandlerClient;
use similar::TextDiff;

use crate::{
    Error, Result,
    functions::trial::{self, Trial, Verdict},
    site::{functions, page::pretty, viewer::InApplication},
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
    pub(super) fuel: Option<u64>,
}

impl Rerun {
    /// Runs the live functions on an uplink.
    pub(super) async fn of(request: &InApplication, handler: &HandlerClient, record: Record) -> Result<Self> {
        let live = functions::live(request, handler).await?;
        let trials = trial::run(handler, &live.functions.unwrap_or_default(), vec![record]).await?;
        let trial = trials.into_iter().next().ok_or(Error::NotFound("message"))?;
        Ok(Self::new(trial, live.number))
    }

    fn new(Trial { record, now, fuel, verdict }: Trial, version: u32) -> Self {
        let before = if record.failure.is_empty() { pretty(&record.fields) } else { record.failure };
        let now = pretty(&now);
        let diff = if verdict == Verdict::Equal || before == now { String::new() } else { diff(&before, &now) };
        Self { version, verdict, before, now, diff, fuel }
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

    fn rerun(fields: &str, now: &str, verdict: Verdict) -> Rerun {
        let record = Record { fields: fields.to_owned(), ..Record::default() };
        Rerun::new(Trial { record, now: now.to_owned(), fuel: Some(7), verdict }, 2)
    }

    #[test]
    fn only_what_differs_is_in_the_difference() {
        let changed = rerun(r#"{"a":1,"b":2}"#, r#"{"a":1,"b":3}"#, Verdict::Changed);
        assert!(changed.diff.contains("\n-  \"b\": 2\n+  \"b\": 3\n"), "{}", changed.diff);
        assert!(changed.diff.contains("\n   \"a\": 1,\n") && !changed.diff.contains("No newline"), "{}", changed.diff);
        assert_eq!(rerun(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, Verdict::Equal).diff, "");
    }
}
