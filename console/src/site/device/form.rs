//! The form of a new downlink.

use crate::site::{failure::Problem, viewer::Sent};

/// The form, with what was entered. A refused one says why.
#[derive(Clone, Debug, Default)]
pub(in crate::site) struct DownlinkForm {
    pub(in crate::site) payload: String,
    pub(in crate::site) port: String,
    pub(in crate::site) confirmed: bool,
    pub(in crate::site) by_fields: bool,
    pub(in crate::site) schedule: String,
    pub(in crate::site) problem: Option<Problem>,
    /// True if the form is a draft that was sent when the login had expired or a service was away.
    pub(in crate::site) is_draft: bool,
}

impl DownlinkForm {
    pub(in crate::site) fn of(sent: &Sent) -> Self {
        Self {
            payload: sent.value("payload").to_owned(),
            port: sent.value("port").trim().to_owned(),
            confirmed: !sent.value("confirmed").is_empty(),
            by_fields: sent.value("form") == "fields",
            schedule: sent.value("schedule").to_owned(),
            ..Self::default()
        }
    }
}
