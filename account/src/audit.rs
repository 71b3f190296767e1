//! The audit log: one line for each event that matters to security, under the log target `audit`.
//!
//! Logins and refusals, passwords, sessions, consents, codes, grants, clients, keys and rights: what was done, by whom,
//! to what. `telemetry.audit_file` keeps the lines in a file of their own.

use std::fmt::Display;

/// Says what happened, who did it and to what. Only parsed values go in here, so nobody can forge a line.
pub(crate) fn event(event: &'static str, actor: &dyn Display, object: &dyn Display) {
    tracing::info!(target: "audit", event, %actor, %object);
}
