//! Result of functions for a simulated uplink. Live uplinks do without this copy.

use runtime::{Failure, LogEntry};
use serde_json::value::RawValue;

use crate::{
    payload::{DecodeError, Decoded, Payload},
    registry::{application::Applications, device::Device},
    status::cost::Cost,
};

/// Reader of the functions' result, besides the subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Nobody asked, or may read it.
    Nobody,
    /// The caller, who may read the functions.
    Caller,
}

/// Result of handling an uplink.
#[derive(Debug)]
pub struct Handled {
    /// Cost of its functions.
    pub cost: Cost,
    /// The outcome, in a word.
    pub outcome: history::Outcome,
    /// None if nobody reads it.
    pub result: Option<FunctionsResult>,
}

/// Result of the functions for an uplink.
#[derive(Debug)]
pub struct FunctionsResult {
    /// A JSON object; none if there are no fields.
    pub fields: Option<Box<RawValue>>,
    /// Console output of the functions.
    pub logs: Vec<LogEntry>,
    /// Warnings and errors that the application gets about the uplink.
    pub warnings: Vec<String>,
    /// Reason why there are no fields, with the failing line where it is known.
    pub failure: Option<String>,
    /// The function that failed, whose line is not known yet.
    failed: Option<Failure>,
}

impl Handled {
    /// The size of the result, in bytes; zero if nobody reads it.
    pub(crate) fn bytes(&self) -> usize {
        self.result.as_ref().map_or(0, FunctionsResult::bytes)
    }
}

impl FunctionsResult {
    fn bytes(&self) -> usize {
        let fields = self.fields.as_ref().map_or(0, |fields| fields.get().len());
        let logs: usize = self.logs.iter().flat_map(|entry| &entry.fields).map(String::len).sum();
        let warnings: usize = self.warnings.iter().map(String::len).sum();
        fields + logs + warnings + self.failure.as_ref().map_or(0, String::len)
    }

    /// Copies the result that is about to be published.
    pub(super) fn of(decoded: &Decoded, payload: &Payload) -> Self {
        let failed = match &decoded.error {
            Some(DecodeError::Function(failure)) => Some(failure.clone()),
            _ => None,
        };
        Self {
            fields: decoded.fields.clone(),
            logs: decoded.logs.clone(),
            warnings: payload.warnings.iter().chain(&decoded.warnings).cloned().collect(),
            failure: decoded.error.as_ref().map(ToString::to_string),
            failed,
        }
    }

    /// Adds the failing line, if a function failed. Its source is only read now, because the uplink must not wait for
    /// that.
    pub(super) async fn add_excerpt(&mut self, applications: &Applications, device: &Device) {
        let (Some(failed), Some(text)) = (self.failed.take(), &mut self.failure) else { return };
        // The failure is told also without the line.
        let Ok(application) = applications.get_for(device.path()).await else { return };
        if let Some(excerpt) = failed.excerpt(application.sources()) {
            text.push('\n');
            text.push_str(&excerpt);
        }
    }
}
