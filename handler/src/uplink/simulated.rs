//! What functions made of a simulated uplink, for whoever simulates it. Live uplinks do without this copy.

use runtime::LogEntry;
use serde_json::value::RawValue;
use types::AppId;

use crate::{
    application::Applications,
    cost::Cost,
    payload::{DecodeError, Decoded, Payload},
};

/// What became of a simulated uplink.
#[derive(Debug)]
pub(crate) struct Simulated {
    pub(crate) cost: Cost,
    /// None if the caller may not read it.
    pub(crate) outcome: Option<Outcome>,
}

/// What the functions made of an uplink.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// A JSON object.
    pub(crate) fields: Option<Box<RawValue>>,
    pub(crate) logs: Vec<LogEntry>,
    pub(crate) warnings: Vec<String>,
    /// Why there are no fields, with the failing line where it is known.
    pub(crate) failure: Option<String>,
}

impl Outcome {
    /// Copies what is about to be published. The sources are read only if a function failed.
    pub(super) async fn of(decoded: &Decoded, payload: &Payload, applications: &Applications, app_id: &AppId) -> Self {
        let failure = match &decoded.error {
            Some(DecodeError::Function(failure)) => {
                // The failure is told also without the line.
                let application = applications.get(app_id).await.ok();
                let excerpt = application.and_then(|application| failure.excerpt(application.sources()));
                Some([Some(failure.to_string()), excerpt].into_iter().flatten().collect::<Vec<_>>().join("\n"))
            }
            Some(error) => Some(error.to_string()),
            None => None,
        };
        Self {
            fields: decoded.fields.clone(),
            logs: decoded.logs.clone(),
            warnings: payload.warnings.iter().chain(&decoded.warnings).cloned().collect(),
            failure,
        }
    }
}
