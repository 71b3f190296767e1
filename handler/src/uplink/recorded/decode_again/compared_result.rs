//! Results of functions for an uplink, stored or new, in one form.

use std::borrow::Cow;

use history::{Outcome, Record, warnings_text};
use serde_json::value::RawValue;

use crate::{
    payload::Decoded,
    uplink::record::{logs, outcome},
};

/// The result of functions for an uplink, in the form that history has.
#[derive(Debug)]
pub(super) struct ComparedResult<'a> {
    pub(super) outcome: Outcome,
    /// JSON; empty for none.
    pub(super) result: &'a str,
    /// JSON; empty for none.
    pub(super) normalized: &'a str,
    pub(super) failure: Cow<'a, str>,
    /// JSON; empty for none.
    pub(super) logs: Cow<'a, str>,
    /// JSON; empty for none.
    pub(super) warnings: Cow<'a, str>,
    pub(super) fuel: u64,
}

impl<'a> From<&'a Record> for ComparedResult<'a> {
    fn from(record: &'a Record) -> Self {
        Self {
            outcome: record.outcome,
            result: &record.result,
            normalized: &record.normalized,
            failure: record.failure.as_deref().unwrap_or_default().into(),
            logs: record.logs.as_str().into(),
            warnings: record.warnings.as_str().into(),
            fuel: record.fuel,
        }
    }
}

impl<'a> From<&'a Decoded> for ComparedResult<'a> {
    fn from(decoded: &'a Decoded) -> Self {
        let text = |json: Option<&'a RawValue>| json.map_or("", RawValue::get);
        let warnings: Vec<_> = decoded.warnings.iter().collect();
        Self {
            outcome: outcome(decoded),
            result: text(decoded.fields.as_deref()),
            normalized: text(decoded.normalized.as_deref()),
            failure: decoded.error.as_ref().map(ToString::to_string).unwrap_or_default().into(),
            logs: logs(&decoded.logs).into(),
            warnings: warnings_text(&warnings).into(),
            fuel: decoded.cost.fuel,
        }
    }
}
