//! Functions tried on messages of the past, before they are saved.

use api::{
    handler::{Application, DryUplinkMessage, DryUplinkResult},
    history::Record,
};
use client::handler::HandlerClient;
use serde_json::Value;
use types::{Kind, Kinded};

use crate::Result;

/// Number of messages on which functions are tried.
pub(crate) const MESSAGES_MAX: u32 = 10;

/// Result of functions for one message, beside the one when it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) record: Record,
    /// The result now: JSON, or the error of a function.
    pub(crate) now: String,
    /// The fuel that the functions used; none if one of them failed.
    pub(crate) fuel: Option<u64>,
    pub(crate) verdict: Verdict,
}

/// Difference between a result and the one that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Equal,
    Changed,
    Mended,
    Broken,
    StillFails,
}

impl Verdict {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Changed => "changed",
            Self::Mended => "decoded now",
            Self::Broken => "fails now",
            Self::StillFails => "still fails",
        }
    }

    pub(crate) fn is_good(self) -> bool {
        matches!(self, Self::Equal | Self::Mended)
    }

    pub(crate) fn is_bad(self) -> bool {
        matches!(self, Self::Broken | Self::StillFails)
    }
}

/// Runs the functions on each message with its time and its seed, one after the other. Nothing is published.
pub(crate) async fn run(handler: &HandlerClient, functions: &Application, records: Vec<Record>) -> Result<Vec<Trial>> {
    let mut trials = Vec::with_capacity(records.len());
    for record in records {
        let (app, record_id) = (Some(functions.clone()), record.id.clone());
        let message = DryUplinkMessage { app, record: record_id, ..DryUplinkMessage::default() };
        trials.push(match handler.dry_uplink(message).await {
            Ok(result) => decoded(record, result),
            // That is how the handler reports a function that fails.
            Err(error) if error.kind() == Kind::Invalid => failed(record, error.to_string()),
            Err(error) => return Err(error.into()),
        });
    }
    Ok(trials)
}

fn decoded(record: Record, result: DryUplinkResult) -> Trial {
    let fuel = Some(result.fuel);
    if !result.valid {
        return Trial { fuel, ..failed(record, format!("The validator rejected {}", result.fields)) };
    }
    let verdict = match record.outcome.as_str() {
        "failed" | "invalid" => Verdict::Mended,
        _ if is_same(&record.fields, &result.fields) => Verdict::Equal,
        _ => Verdict::Changed,
    };
    Trial { record, now: result.fields, fuel, verdict }
}

fn failed(record: Record, why: String) -> Trial {
    let verdict = match record.outcome.as_str() {
        "failed" | "invalid" => Verdict::StillFails,
        _ => Verdict::Broken,
    };
    Trial { record, now: why, fuel: None, verdict }
}

/// Returns true if two texts are the same JSON, whatever the order of their members.
fn is_same(before: &str, now: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    before == now || read(before).is_some_and(|before| Some(before) == read(now))
}
