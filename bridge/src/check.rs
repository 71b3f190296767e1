//! Checks of what somebody enters, before a bridge starts with it.

use client::Error;

/// A network's answer about an application that somebody has entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicationCheck {
    /// The network has it. The text has what else is known of it, and may be empty.
    Found(String),
    /// It may not be there, or not be the only one, for this reason.
    Uncertain(String),
    /// The network does not have it, or the API key may not read it. The text says what to do.
    Missing(String),
}

impl ApplicationCheck {
    /// The API failed, so nobody knows if the application is there.
    pub fn unanswered(error: &Error) -> Self {
        let reason = error.reason().map(|reason| format!(": {reason}")).unwrap_or_default();
        Self::Uncertain(format!("the API has not answered whether it is there ({error}{reason})"))
    }
}
