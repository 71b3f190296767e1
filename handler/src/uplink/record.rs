//! Record of an uplink for history: the whole input of its functions, and their result.

use history::{History, Kind, Loss, NewRecord, Outcome, RecordId, logs_text, microseconds, warnings_text};
use runtime::LogEntry;
use serde_json::value::RawValue;
use types::{DevicePath, Metadata};

use crate::{
    payload::{Decoded, Payload, Payloads, Validity},
    registry::application::ApplicationSummary,
};

/// Revision of a record, and the record that it corrects; by default none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Correction {
    pub(crate) revision: u32,
    pub(crate) corrects: Option<RecordId>,
}

/// Puts an uplink into history. What this returns resolves when it is on disk, or was not kept.
pub(crate) fn record(
    (history, payloads): (&History, &Payloads),
    DevicePath { app_id, dev_id }: DevicePath<'_>,
    application: &ApplicationSummary,
    (payload, decoded): (&Payload, &Decoded),
    Correction { revision, corrects }: Correction,
) -> impl Future<Output = Result<RecordId, Loss>> + use<> {
    let functions = did_run(application, decoded).then(|| *application.functions_hash.as_bytes());
    let warnings: Vec<&String> = payload.warnings.iter().chain(&decoded.warnings).collect();
    let failure = decoded.error.as_ref().map(ToString::to_string);
    history.append(&NewRecord {
        port: payload.port,
        counter: payload.f_cnt,
        confirmed: payload.confirmed,
        is_retry: payload.is_retry,
        payload: payload.bytes.as_deref().unwrap_or_default(),
        metadata: &metadata(&payload.metadata),
        extra: &payload.extra,
        functions,
        version: version_that_ran(application, decoded),
        limits: functions.map(|_| payloads.limits(app_id).prefix()),
        outcome: outcome(decoded),
        result: text(decoded.fields.as_deref()),
        normalized: text(decoded.normalized.as_deref()),
        failure: failure.as_deref(),
        logs: &logs(&decoded.logs),
        warnings: &warnings_text(&warnings),
        fuel: decoded.cost.fuel,
        microseconds: microseconds(decoded.cost.elapsed),
        revision,
        corrects,
        ..NewRecord::new(app_id, dev_id, &Kind::Uplink, payload.received)
    })
}

/// The version of the functions that made this of an uplink; none if no function ran.
pub(crate) fn version_that_ran(application: &ApplicationSummary, decoded: &Decoded) -> Option<u32> {
    application.version.filter(|_| did_run(application, decoded))
}

/// Which version of the functions made this of an uplink, without its number.
pub(crate) fn version_label(application: &ApplicationSummary, decoded: &Decoded) -> &'static str {
    match (did_run(application, decoded), application.is_candidate) {
        (false, _) => "none",
        (true, false) => "live",
        (true, true) => "candidate",
    }
}

fn did_run(application: &ApplicationSummary, decoded: &Decoded) -> bool {
    let ran = decoded.validity != Validity::NotConverted || decoded.error.is_some();
    ran && application.has_uplink_function
}

/// Returns the outcome of an uplink as history names it.
pub(crate) fn outcome(decoded: &Decoded) -> Outcome {
    match (&decoded.error, decoded.validity) {
        (Some(_), _) => Outcome::Failed,
        (None, Validity::Valid) => Outcome::Decoded,
        (None, Validity::Invalid) => Outcome::Invalid,
        (None, Validity::NotConverted) => Outcome::NotConverted,
    }
}

fn text(json: Option<&RawValue>) -> &str {
    json.map_or("", RawValue::get)
}

/// Empty if nothing is known, as of what is simulated.
fn metadata(metadata: &Metadata) -> String {
    if *metadata == Metadata::default() {
        return String::new();
    }
    // Numbers and texts can always be written.
    serde_json::to_string(metadata).unwrap_or_default()
}

/// Logs as history has them.
pub(crate) fn logs(logs: &[LogEntry]) -> String {
    logs_text(logs.iter().map(|entry| (entry.slot.name(), &*entry.fields)))
}
