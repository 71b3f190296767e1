//! The audit log: one line for each event that matters to security, under the log target `audit`.

use std::fmt::Display;

/// Says what happened, who did it and to what. Only parsed values go in here, so nobody can forge a line.
pub(crate) fn event(event: &'static str, actor: &dyn Display, object: &dyn Display) {
    tracing::info!(target: "audit", event, %actor, %object);
}
