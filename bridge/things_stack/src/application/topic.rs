//! The Things Stack's topics: `v3/APPLICATION@TENANT/devices/DEVICE/` and the kind of message.

use std::fmt;

use bridge::publish::output::OutputTopic;

/// Maximum length of an id.
const ID_BYTES_MAX: usize = 36;

/// A topic of The Things Stack, without a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Topic<'a> {
    /// `app1@tenant1`, or `app1` in the open source edition.
    pub(crate) application: &'a str,
    pub(crate) device: &'a str,
    /// `up`, `down/push`, and so on.
    pub(crate) rest: &'a str,
}

impl<'a> Topic<'a> {
    /// Parses a topic that starts with `prefix`.
    pub(crate) fn parse(topic: &'a str, prefix: &str) -> Option<Self> {
        let rest = topic.strip_prefix(prefix)?.strip_prefix("v3/")?;
        let (application, rest) = rest.split_once("/devices/")?;
        let (device, rest) = rest.split_once('/')?;
        let is_level = |level: &str| !level.is_empty() && !level.contains('/');
        (is_level(application) && is_level(device)).then_some(Self { application, device, rest })
    }

    /// The topic of the same message in another application.
    pub(crate) fn of(self, application: &'a str) -> Self {
        Self { application, ..self }
    }

    /// The topic of another message of the same device.
    pub(crate) fn with(self, rest: &'a str) -> Self {
        Self { rest, ..self }
    }
}

/// Returns true if the text is a valid id in The Things Stack, and so a level of a topic.
pub(crate) fn is_id(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_valid)
}

/// The filter of all messages of an application.
pub(crate) fn messages(application: &str) -> String {
    format!("v3/{application}/devices/+/#")
}

/// The filters of an application's downlinks.
pub(crate) fn downlinks_of(application: &str) -> [String; 2] {
    ["push", "replace"].map(|operation| format!("v3/{application}/devices/+/down/{operation}"))
}

/// The application and device of a topic that starts with `prefix`; empty for other topics.
pub(crate) fn device(prefix: String) -> impl Fn(&str) -> String + Send + Sync + 'static {
    move |topic| {
        Topic::parse(topic, &prefix).map_or_else(String::new, |topic| device_key(topic.application, topic.device))
    }
}

/// Identifies a device among those of all applications.
pub(crate) fn device_key(application: &str, device: &str) -> String {
    format!("{application}/{device}")
}

impl OutputTopic for Topic<'_> {
    fn kind(&self) -> String {
        format!("{}/{}", self.application, self.rest)
    }
}

impl fmt::Display for Topic<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "v3/{}/devices/{}/{}", self.application, self.device, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_topics_and_writes_them_again() {
        let topic = Topic::parse("airlock/v3/app@tenant/devices/dev-1/down/push", "airlock/").unwrap();
        assert_eq!((topic.application, topic.device, topic.rest), ("app@tenant", "dev-1", "down/push"));
        assert_eq!(topic.with("up").to_string(), "v3/app@tenant/devices/dev-1/up");
        for topic in ["v3/app/devices/dev", "v3//devices/d/up", "v2/app/devices/d/up", "x/v3/app/devices/d/up"] {
            assert_eq!(Topic::parse(topic, ""), None, "{topic}");
        }
    }
}
