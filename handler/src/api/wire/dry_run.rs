//! Dry runs: their applications, their results, and functions that failed.

use api::{
    handler::{DryDownlinkResult, DryUplinkResult, FunctionFailure, LogEntry, SimulatedUplinkResult, UplinkOutcome},
    rest::handler::HandlerApplication,
};

use runtime::Slot;

use super::history::record_id;
use crate::{
    Error, FunctionError,
    api::operations::UplinkInput,
    payload::{Decoded, Encoded, Validity},
    registry::application::SentApplication,
    uplink::{FunctionsResult, Handled},
};

/// Maximum length of the reason in a header, in bytes. The text of the status has all of it.
const HEADER_REASON_BYTES_MAX: usize = 500;
/// Maximum size of the logs in a header, in bytes. gRPC clients read 8 kB of headers, and the text of the status needs
/// most of that.
const HEADER_LOG_BYTES_MAX: usize = 1200;

/// Without the payload, which the caller adds.
impl From<Decoded> for DryUplinkResult {
    fn from(decoded: Decoded) -> Self {
        Self {
            payload: Vec::new(),
            fields: decoded.fields.map_or_else(|| "null".to_owned(), |fields| fields.get().to_owned()),
            normalized: decoded.normalized.map(|normalized| normalized.get().to_owned()).unwrap_or_default(),
            valid: decoded.validity != Validity::Invalid,
            logs: decoded.logs.into_iter().map(entry).collect(),
            warnings: decoded.warnings,
            fuel: decoded.cost.fuel,
            microseconds: decoded.cost.microseconds(),
        }
    }
}

impl From<Handled> for SimulatedUplinkResult {
    fn from(Handled { cost, result, .. }: Handled) -> Self {
        Self { fuel: cost.fuel, microseconds: cost.microseconds(), outcome: result.map(Into::into) }
    }
}

impl From<FunctionsResult> for UplinkOutcome {
    fn from(result: FunctionsResult) -> Self {
        Self {
            fields: result.fields.map(|fields| fields.get().to_owned()).unwrap_or_default(),
            logs: result.logs.into_iter().map(entry).collect(),
            warnings: result.warnings,
            failure: result.failure.unwrap_or_default(),
        }
    }
}

impl From<Encoded> for DryDownlinkResult {
    fn from(encoded: Encoded) -> Self {
        let Encoded { payload, logs, cost, .. } = encoded;
        let logs = logs.into_iter().map(entry).collect();
        Self { payload, logs, fuel: cost.fuel, microseconds: cost.microseconds() }
    }
}

impl From<&FunctionError> for FunctionFailure {
    fn from(error: &FunctionError) -> Self {
        let FunctionError { failure, excerpt, logs, cost, .. } = error;
        Self {
            function: failure.slot.name().to_owned(),
            kind: failure.kind.name().to_owned(),
            line: failure.line.unwrap_or_default(),
            column: failure.column.unwrap_or_default(),
            reason: failure.to_string(),
            excerpt: excerpt.clone().unwrap_or_default(),
            logs: logs.iter().cloned().map(entry).collect(),
            fuel: cost.fuel,
            microseconds: cost.microseconds(),
        }
    }
}

impl FunctionError {
    /// The failure, short enough for a header: without the excerpt, which is in the text, and with the last logs only.
    pub(crate) fn for_header(&self) -> FunctionFailure {
        let mut failure = FunctionFailure { excerpt: String::new(), ..self.into() };
        failure.reason.truncate(failure.reason.floor_char_boundary(HEADER_REASON_BYTES_MAX));
        let mut left = HEADER_LOG_BYTES_MAX;
        let fits = |entry: &&LogEntry| {
            let bytes: usize = entry.fields.iter().map(String::len).sum();
            left.checked_sub(bytes).map(|rest| left = rest).is_some()
        };
        let kept = failure.logs.iter().rev().take_while(fits).count();
        failure.logs.drain(..failure.logs.len() - kept);
        failure
    }
}

/// The application of a dry run over gRPC.
pub(crate) fn dry_run_application(message: Option<api::handler::Application>) -> Result<SentApplication, Error> {
    let message = message.ok_or_else(|| Error::invalid("App", "it is missing"))?;
    HandlerApplication::from(message).try_into()
}

/// The input of a dry run: what was sent, or a stored uplink.
pub(crate) fn uplink_input(payload: Vec<u8>, port: u32, record: &str) -> Result<UplinkInput, Error> {
    if record.is_empty() {
        return Ok(UplinkInput::Sent { payload, port });
    }
    if !payload.is_empty() || port != 0 {
        return Err(Error::invalid("Record", "it has a payload and a port of its own: send no others with it"));
    }
    Ok(UplinkInput::Record(record_id(record)?))
}

fn entry(entry: runtime::LogEntry) -> LogEntry {
    LogEntry { function: v2_name(entry.slot).to_owned(), fields: entry.fields }
}

/// The name of a function in v2, whatever its calling convention is.
fn v2_name(slot: Slot) -> &'static str {
    match slot {
        Slot::Decoder => "Decoder",
        Slot::Converter => "Converter",
        Slot::Validator => "Validator",
        Slot::Encoder => "Encoder",
    }
}
