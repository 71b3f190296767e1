//! The audit log: one line per security-relevant event, under the log target `audit`.
//!
//! It covers logins and rejected ones, passwords, sessions, consents, codes, grants, clients, keys and rights: what
//! happened, who did it, and to what. `telemetry.audit_file` also writes it to a file.

use std::fmt::Display;

/// Logs what happened, who did it, and to what. It takes parsed values only, so that nobody can forge a line.
pub(crate) fn event(event: &'static str, actor: &dyn Display, object: &dyn Display) {
    tracing::info!(target: "audit", event, %actor, %object);
}
