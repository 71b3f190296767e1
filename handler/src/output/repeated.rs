//! Events that are sent again as they were recorded, marked as repeated.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The topics of events, by their names.
const TOPICS: [&str; 11] = [
    "events/up/errors",
    "events/activations",
    "events/activations/errors",
    "events/down/scheduled",
    "events/down/sent",
    "events/down/acks",
    "events/down/errors",
    "events/create",
    "events/update",
    "events/delete",
    "events/silent",
];
/// Member that marks an object, as it does uplinks.
pub(super) const MARK: &str = r#""is_retry":true"#;

/// An event that is sent again.
#[derive(Clone, Debug)]
pub struct RepeatedEvent {
    topic: &'static str,
    body: Box<RawValue>,
}

impl RepeatedEvent {
    /// The event with this name and this body, an object or nothing; none if there is no such event, or it has another
    /// body.
    pub(crate) fn new(name: &str, body: &str) -> Option<Self> {
        let topic = TOPICS.into_iter().find(|topic| topic.strip_prefix("events/") == Some(name))?;
        let members = match body.trim() {
            "" => "",
            body => body.strip_prefix('{')?.strip_suffix('}')?.trim(),
        };
        let comma = if members.is_empty() { "" } else { "," };
        let body = RawValue::from_string(format!("{{{members}{comma}{MARK}}}")).ok()?;
        Some(Self { topic, body })
    }

    pub(super) fn topic(&self) -> &'static str {
        self.topic
    }
}

impl Serialize for RepeatedEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.body.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_marked_and_otherwise_as_they_were() {
        for (name, body, expected) in [
            ("down/acks", r#"{"message":{"port":1}}"#, Some(r#"{"message":{"port":1},"is_retry":true}"#)),
            ("create", "", Some(r#"{"is_retry":true}"#)),
            ("delete", "{ }", Some(r#"{"is_retry":true}"#)),
            ("delete", "[1]", None),
            ("delete", "{1}", None),
            ("up", "{}", None),
            ("others", "{}", None),
        ] {
            let event = RepeatedEvent::new(name, body);
            let json = event.as_ref().map(|event| serde_json::to_string(event).unwrap());
            assert_eq!(json.as_deref(), expected, "{name} {body}");
            assert!(event.is_none_or(|event| event.topic().ends_with(name)));
        }
    }
}
