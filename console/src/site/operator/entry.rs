//! A line of the audit log as a row of a table.

use serde::Deserialize;
use types::Timestamp;

use crate::site::page::{Time, short};

/// An event, as people may look at it.
#[derive(Default)]
pub(super) struct AuditEntry {
    /// None if the line is not one that we write.
    pub(super) time: Option<Time>,
    /// The event, or the whole line if it is not one that we write.
    pub(super) event: String,
    pub(super) actor: String,
    pub(super) object: String,
    /// Set if nobody could learn how a change ended.
    pub(super) outcome: String,
}

/// The members of a line that matter to people.
#[derive(Deserialize)]
struct Line {
    timestamp: Timestamp,
    event: String,
    #[serde(default)]
    actor: String,
    #[serde(default)]
    object: String,
    #[serde(default)]
    outcome: String,
}

impl AuditEntry {
    pub(super) fn of(line: &str) -> Self {
        let Ok(read) = serde_json::from_str::<Line>(line) else {
            return Self { event: short(line), ..Self::default() };
        };
        Self {
            time: Some(Time(read.timestamp.as_nanos())),
            event: short(&read.event),
            actor: short(&read.actor),
            object: short(&read.object),
            outcome: short(&read.outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_hides_stays_hidden() {
        let line = r#"{"timestamp":"2026-11-27T10:00:00.5Z","event":"user disabled","actor":"\u202ebob\u001b","object":"a\nb"}"#;
        let entry = AuditEntry::of(line);
        assert_eq!(entry.time.map(|time| time.text()).as_deref(), Some("2026-11-27 10:00:00 UTC"));
        assert_eq!([&*entry.event, &entry.actor, &entry.object], ["user disabled", r"\u202ebob\u001b", r"a\u000ab"]);
        assert_eq!(entry.outcome, "");
    }

    #[test]
    fn a_line_that_we_did_not_write_is_shown_as_it_is() {
        let entry = AuditEntry::of("half of a li\u{7}");
        assert_eq!((entry.event.as_str(), entry.time.is_none()), (r"half of a li\u0007", true));
        assert!(AuditEntry::of(&"x".repeat(10_000)).event.chars().count() < 200);
    }
}
