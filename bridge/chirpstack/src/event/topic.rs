//! ChirpStack's topics: `application/ID/device/EUI/event/NAME` and `application/ID/device/EUI/command/down`.

use std::fmt;

use bridge::publish::output::OutputTopic;

/// Filters of all events, of those that shadow mode needs, and of all downlink commands.
pub(crate) const EVENTS: &str = "application/+/device/+/event/+";
pub(crate) const SHADOWED: [&str; 2] = ["application/+/device/+/event/up", "application/+/device/+/event/log"];
pub(crate) const COMMANDS: &str = "application/+/device/+/command/down";

/// The device of a topic that starts with `prefix`; empty for other topics.
pub(crate) fn device(prefix: String) -> impl Fn(&str) -> String + Send + Sync + 'static {
    move |topic| Topic::parse(topic, &prefix).map_or_else(String::new, |topic| topic.dev_eui.to_owned())
}

/// A topic of ChirpStack, without a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Topic<'a> {
    pub(crate) application_id: &'a str,
    pub(crate) dev_eui: &'a str,
    /// `event/up`, or `command/down`.
    pub(crate) rest: &'a str,
}

impl<'a> Topic<'a> {
    /// Parses a topic that starts with `prefix`.
    pub(crate) fn parse(topic: &'a str, prefix: &str) -> Option<Self> {
        let rest = topic.strip_prefix(prefix)?.strip_prefix("application/")?;
        let (application_id, rest) = rest.split_once("/device/")?;
        let (dev_eui, rest) = rest.split_once('/')?;
        let is_level = |level: &str| !level.is_empty() && !level.contains('/');
        (is_level(application_id) && is_level(dev_eui)).then_some(Self { application_id, dev_eui, rest })
    }

    /// The name of an event; none for a command.
    pub(crate) fn event(&self) -> Option<&'a str> {
        self.rest.strip_prefix("event/")
    }

    /// The topic of another event of the same device.
    pub(crate) fn with(self, rest: &'a str) -> Self {
        Self { rest, ..self }
    }
}

impl OutputTopic for Topic<'_> {
    fn kind(&self) -> String {
        format!("{}/{}", self.application_id, self.rest)
    }
}

impl fmt::Display for Topic<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "application/{}/device/{}/{}", self.application_id, self.dev_eui, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_topics_and_writes_them_again() {
        let topic = Topic::parse("airlock/application/a1/device/0102/event/up", "airlock/").unwrap();
        assert_eq!((topic.application_id, topic.dev_eui, topic.event()), ("a1", "0102", Some("up")));
        assert_eq!(topic.with("event/log").to_string(), "application/a1/device/0102/event/log");
        assert_eq!(Topic::parse("application/a1/device/0102/command/down", "").unwrap().event(), None);
        for topic in
            ["application/a1/device/0102", "application//device/1/event/up", "x/application/a/device/b/event/up"]
        {
            assert_eq!(Topic::parse(topic, ""), None, "{topic}");
        }
    }
}
