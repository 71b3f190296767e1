//! Functions tried on messages of the past, before they are saved.

use api::{
    handler::{Application, DryUplinkMessage, DryUplinkResult},
    history::Record,
    rest::handler::Verdicts,
};
use client::handler::HandlerClient;
use serde_json::Value;
use types::{Kind, Kinded};

use crate::Result;

/// Number of messages on which functions are tried.
pub(crate) const MESSAGES_MAX: usize = 10;
/// The text that the handler puts before the reason for which a function failed. Stored failures go without it.
const REFUSED: &str = "payload function not valid: ";

/// Result of functions for a message, beside the one of others, or the one when it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) record: Record,
    pub(crate) before: TrialResult,
    pub(crate) now: TrialResult,
    pub(crate) verdict: Verdict,
}

/// The result of functions for a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrialResult {
    /// JSON, or the error of a function.
    pub(crate) text: String,
    /// JSON; empty for none.
    pub(crate) normalized: String,
    pub(crate) outcome: TrialOutcome,
    /// The fuel that the functions used; none if one of them failed.
    pub(crate) fuel: Option<u64>,
}

/// The kinds of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TrialOutcome {
    #[default]
    Decoded,
    Failed,
    NotConverted,
}

/// Difference between two results, named as when stored uplinks are decoded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Equal,
    Changed,
    NewlyDecoded,
    NewlyFailing,
    StillFailing,
}

impl Verdict {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Changed => "changed",
            Self::NewlyDecoded => "newly decoded",
            Self::NewlyFailing => "newly failing",
            Self::StillFailing => "still failing",
        }
    }

    pub(crate) fn is_good(self) -> bool {
        matches!(self, Self::Equal | Self::NewlyDecoded)
    }

    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::NewlyFailing | Self::StillFailing)
    }

    /// The same rules as when stored uplinks are decoded again.
    fn of(before: &TrialResult, now: &TrialResult) -> Self {
        match (before.outcome, now.outcome) {
            (TrialOutcome::Failed, TrialOutcome::Failed) => Self::StillFailing,
            (_, TrialOutcome::Failed) => Self::NewlyFailing,
            (TrialOutcome::Failed | TrialOutcome::NotConverted, TrialOutcome::Decoded) => Self::NewlyDecoded,
            _ if is_same(&before.text, &now.text) && is_same(&before.normalized, &now.normalized) => Self::Equal,
            _ => Self::Changed,
        }
    }
}

impl TrialResult {
    /// The result when the message arrived.
    fn stored(record: &Record) -> Self {
        let outcome = match record.outcome.as_str() {
            "failed" | "invalid" => TrialOutcome::Failed,
            "not_converted" => TrialOutcome::NotConverted,
            _ => TrialOutcome::Decoded,
        };
        let text = if record.failure.is_empty() { &record.fields } else { &record.failure };
        let (text, normalized) = (text.clone(), record.normalized.clone());
        Self { text, normalized, outcome, fuel: Some(record.fuel) }
    }

    fn failed(why: String) -> Self {
        Self { text: why, outcome: TrialOutcome::Failed, ..Self::default() }
    }
}

impl From<DryUplinkResult> for TrialResult {
    fn from(result: DryUplinkResult) -> Self {
        let DryUplinkResult { fields: text, normalized, valid, fuel, .. } = result;
        if !valid {
            return Self { fuel: Some(fuel), ..Self::failed(format!("The validator rejected {text}")) };
        }
        // Whatever runs uses fuel.
        let outcome = if fuel == 0 && text == "null" { TrialOutcome::NotConverted } else { TrialOutcome::Decoded };
        Self { text, normalized, outcome, fuel: Some(fuel) }
    }
}

/// Runs functions on each message, one after the other, and compares each result with that of the functions that are
/// live. Nothing is published.
pub(crate) async fn compare(
    handler: &HandlerClient,
    (live, functions): (&Application, &Application),
    records: Vec<Record>,
) -> Result<Vec<Trial>> {
    let mut trials = Vec::with_capacity(records.len());
    for record in records {
        let (before, now) = (run(handler, live, &record).await?, run(handler, functions, &record).await?);
        trials.push(Trial { verdict: Verdict::of(&before, &now), record, before, now });
    }
    Ok(trials)
}

/// Runs functions on a message, and compares the result with the stored one. Nothing is published.
pub(crate) async fn again(handler: &HandlerClient, functions: &Application, record: Record) -> Result<Trial> {
    let (before, now) = (TrialResult::stored(&record), run(handler, functions, &record).await?);
    Ok(Trial { verdict: Verdict::of(&before, &now), record, before, now })
}

/// Counts the verdicts.
pub(crate) fn count(verdicts: impl IntoIterator<Item = Verdict>) -> Verdicts {
    let mut counts = Verdicts::default();
    for verdict in verdicts {
        *match verdict {
            Verdict::Equal => &mut counts.equal,
            Verdict::Changed => &mut counts.changed,
            Verdict::NewlyDecoded => &mut counts.newly_decoded,
            Verdict::NewlyFailing => &mut counts.newly_failing,
            Verdict::StillFailing => &mut counts.still_failing,
        } += 1;
    }
    counts
}

/// Runs the functions on a message with its time and its seed.
async fn run(handler: &HandlerClient, functions: &Application, record: &Record) -> Result<TrialResult> {
    let (app, record) = (Some(functions.clone()), record.id.clone());
    match handler.dry_uplink(DryUplinkMessage { app, record, ..DryUplinkMessage::default() }).await {
        Ok(result) => Ok(result.into()),
        // That is how the handler reports a function that fails.
        Err(error) if error.kind() == Kind::Invalid => Ok(TrialResult::failed(reason(&error.to_string()).to_owned())),
        Err(error) => Err(error.into()),
    }
}

/// The reason for a failure, as a message has it that is stored.
fn reason(refusal: &str) -> &str {
    refusal.strip_prefix(REFUSED).unwrap_or(refusal)
}

/// Returns true if two texts are the same JSON, whatever the order of their members. Without fields, stored text is
/// empty, and that of a run is `null`.
fn is_same(before: &str, now: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(if text.is_empty() { "null" } else { text }).ok();
    before == now || read(before).is_some_and(|before| Some(before) == read(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dry(fields: &str, fuel: u64) -> TrialResult {
        DryUplinkResult { fields: fields.to_owned(), valid: true, fuel, ..DryUplinkResult::default() }.into()
    }

    fn stored(outcome: &str, fields: &str) -> TrialResult {
        let (outcome, fields) = (outcome.to_owned(), fields.to_owned());
        TrialResult::stored(&Record { outcome, fields, ..Record::default() })
    }

    #[test]
    fn results_are_equal_change_fail_or_recover() {
        let decoded = dry(r#"{"a":1,"b":2}"#, 9);
        let failed = TrialResult::failed("no".to_owned());
        assert_eq!(Verdict::of(&decoded, &dry(r#"{"b":2,"a":1}"#, 8)), Verdict::Equal);
        assert_eq!(Verdict::of(&decoded, &dry(r#"{"b":2}"#, 8)), Verdict::Changed);
        assert_eq!(
            Verdict::of(&decoded, &TrialResult { normalized: "[]".to_owned(), ..decoded.clone() }),
            Verdict::Changed
        );
        assert_eq!(Verdict::of(&decoded, &failed), Verdict::NewlyFailing);
        assert_eq!(Verdict::of(&failed, &failed), Verdict::StillFailing);
        assert_eq!(Verdict::of(&failed, &decoded), Verdict::NewlyDecoded);
        let refused = DryUplinkResult { fields: "{}".to_owned(), fuel: 3, ..DryUplinkResult::default() };
        assert_eq!(Verdict::of(&decoded, &refused.into()), Verdict::NewlyFailing);
    }

    #[test]
    fn a_failure_reads_as_a_stored_one() {
        let failure = "the decoder failed (line 1): no";
        assert_eq!(reason(&format!("payload function not valid: {failure}")), failure);
        assert_eq!(reason("port not valid: must be below 224"), "port not valid: must be below 224");
    }

    #[test]
    fn what_has_no_fields_is_told_from_what_was_not_converted() {
        let (none, nothing_ran) = (dry("null", 9), dry("null", 0));
        assert_eq!(Verdict::of(&stored("decoded", ""), &none), Verdict::Equal);
        assert_eq!(Verdict::of(&stored("not_converted", ""), &none), Verdict::NewlyDecoded);
        assert_eq!(Verdict::of(&nothing_ran, &none), Verdict::NewlyDecoded);
        assert_eq!(Verdict::of(&nothing_ran, &nothing_ran), Verdict::Equal);
        assert_eq!(Verdict::of(&stored("invalid", "{}"), &none), Verdict::NewlyDecoded);
    }

    #[test]
    fn each_verdict_is_counted() {
        let counts = count([Verdict::Equal, Verdict::StillFailing, Verdict::Equal]);
        assert_eq!(counts, Verdicts { equal: 2, still_failing: 1, ..Verdicts::default() });
    }
}
