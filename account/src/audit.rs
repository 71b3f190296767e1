//! The audit log: one line for each security-relevant event, with the log target `audit`.
//!
//! It covers logins, passwords, sessions, consents, codes, grants, clients, keys, rights, and refused attempts.
//! `telemetry.audit_file` writes these lines to a file of their own.

use std::fmt::Display;

/// Logs an event. `actor` and `object` must be parsed values, so that clients cannot inject lines.
pub(crate) fn event(event: &'static str, actor: &dyn Display, object: &dyn Display) {
    tracing::info!(target: "audit", event, %actor, %object);
}
