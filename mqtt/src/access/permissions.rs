//! Topics that a client may subscribe to and publish on.

use std::fmt;

use types::{AppId, ApplicationRight, Claims, DevId};

/// Maximum length of a topic, or of a filter with the name of its shared subscription, in bytes.
pub(crate) const TOPIC_BYTES_MAX: usize = 256;

/// Maximum number of levels of a filter.
const LEVELS_MAX: usize = 8;

/// A client's application, and what its credential allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permissions {
    pub(crate) app_id: AppId,
    /// True if the client may subscribe to its application's messages.
    reads: bool,
    /// True if the client may publish downlinks.
    writes: bool,
}

impl Permissions {
    pub(crate) fn new(app_id: AppId, claims: &Claims) -> Self {
        let reads = claims.allows(&app_id, ApplicationRight::MessagesUpRead);
        let writes = claims.allows(&app_id, ApplicationRight::MessagesDownWrite);
        Self { app_id, reads, writes }
    }

    pub(crate) fn with_rights(app_id: AppId, reads: bool, writes: bool) -> Self {
        Self { app_id, reads, writes }
    }

    /// Returns true if the client has any right.
    pub(crate) fn may_connect(&self) -> bool {
        self.reads || self.writes
    }

    /// Returns true if the client may subscribe to anything.
    pub(crate) fn may_read(&self) -> bool {
        self.reads
    }

    /// Returns true if the client may publish anything.
    pub(crate) fn may_write(&self) -> bool {
        self.writes
    }

    /// Returns true if the client may publish to `topic`: only to `<app_id>/devices/<dev_id>/down`.
    pub(crate) fn may_publish(&self, topic: &str) -> bool {
        self.downlink_device(topic).is_some()
    }

    /// Returns true if the client may publish downlinks, and `topic` is below its application.
    pub(crate) fn may_mean_downlink(&self, topic: &str) -> bool {
        self.writes && topic.split('/').next() == Some(self.app_id.as_str())
    }

    /// The device to which the client may publish a downlink on `topic`.
    pub(crate) fn downlink_device(&self, topic: &str) -> Option<DevId> {
        let mut levels = topic.split('/');
        let (app_id, devices, dev_id) = (levels.next(), levels.next(), levels.next());
        let is_allowed = self.writes
            && topic.len() <= TOPIC_BYTES_MAX
            && app_id == Some(self.app_id.as_str())
            && devices == Some("devices")
            && levels.eq(["down"]);
        dev_id.filter(|_| is_allowed)?.parse().ok()
    }

    /// Returns true if `filter` matches only topics of the client's application. The name of a shared subscription
    /// counts only as a part of the length.
    pub(crate) fn may_subscribe(&self, filter: &str) -> bool {
        let is_short = filter.len() <= TOPIC_BYTES_MAX;
        let (_, filter) = split_share(filter);
        self.reads
            && is_short
            && filter.split('/').count() <= LEVELS_MAX
            && filter.split('/').next() == Some(self.app_id.as_str())
    }

    /// Narrows a filter for every application to the client's own.
    ///
    /// Clients in the field subscribe to `+/devices/+/up` and even to `#`, and mean their own application.
    pub(crate) fn narrow(&self, filter: &str) -> String {
        let (share, filter) = split_share(filter);
        match filter.split_once('/') {
            None if filter == "#" => format!("{share}{}/#", self.app_id),
            None if filter == "+" => format!("{share}{}", self.app_id),
            Some(("+", rest)) => format!("{share}{}/{rest}", self.app_id),
            _ => format!("{share}{filter}"),
        }
    }
}

/// Splits `$share/<group>/` off a filter.
pub(crate) fn split_share(filter: &str) -> (&str, &str) {
    let group = filter.strip_prefix("$share/").and_then(|rest| rest.find('/'));
    filter.split_at(group.map_or(0, |end| "$share/".len() + end + 1))
}

/// `<app_id>:<r or -><w or ->`.
impl fmt::Display for Permissions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |set, letter| if set { letter } else { '-' };
        write!(out, "{}:{}{}", self.app_id, flag(self.reads, 'r'), flag(self.writes, 'w'))
    }
}

#[cfg(test)]
mod tests {
    use mqtt5_protocol::topic_matches_filter;
    use proptest::prelude::*;

    use super::*;

    fn permissions(rights: &str) -> Permissions {
        let (reads, writes) = (rights.contains('r'), rights.contains('w'));
        Permissions { app_id: "my-app".parse().unwrap(), reads, writes }
    }

    #[test]
    fn narrows_wildcards_in_the_first_level_to_the_own_application() {
        for (asked, granted) in [
            ("#", "my-app/#"),
            ("+", "my-app"),
            ("+/#", "my-app/#"),
            ("+/devices/+/up", "my-app/devices/+/up"),
            ("+/devices/+/events/#", "my-app/devices/+/events/#"),
            ("$share/workers/+/devices/+/up", "$share/workers/my-app/devices/+/up"),
            ("$share/workers/#", "$share/workers/my-app/#"),
        ] {
            let narrowed = permissions("r-").narrow(asked);
            assert_eq!(narrowed, granted);
            assert!(permissions("r-").may_subscribe(&narrowed), "{narrowed}");
        }
    }

    #[test]
    fn keeps_other_filters_and_allows_only_those_of_the_own_application() {
        for (filter, allowed) in [
            ("my-app/devices/+/up", true),
            ("my-app/#", true),
            ("$share/g/my-app/devices/+/up", true),
            ("other-app/devices/+/up", false),
            ("my-app2/devices/+/up", false),
            ("$share/g/other-app/#", false),
            ("$share/g", false),
            ("$SYS/#", false),
            ("$queue/my-app/#", false),
            ("/my-app/#", false),
            ("", false),
            ("my-app/1/2/3/4/5/6/7", true),
            ("my-app/1/2/3/4/5/6/7/8", false),
        ] {
            let narrowed = permissions("r-").narrow(filter);
            assert_eq!(narrowed, filter);
            assert_eq!(permissions("r-").may_subscribe(&narrowed), allowed, "{filter}");
            assert!(!permissions("-w").may_subscribe(&narrowed), "{filter}");
        }
    }

    #[test]
    fn allows_publishing_only_to_down_topics_of_the_own_application() {
        for (topic, allowed) in [
            ("my-app/devices/my-device/down", true),
            ("my-app/devices/my-device/up", false),
            ("my-app/devices/my-device/down/more", false),
            ("my-app/devices/My Device/down", false),
            ("my-app/devices//down", false),
            ("my-app/devices/my-device", false),
            ("my-app/events/down", false),
            ("other-app/devices/my-device/down", false),
            ("/my-app/devices/my-device/down", false),
        ] {
            assert_eq!(permissions("-w").may_publish(topic), allowed, "{topic}");
            assert!(!permissions("r-").may_publish(topic), "{topic}");
        }
    }

    proptest! {
        /// Whatever filter a client asks for, the granted one never matches another application's topic.
        #[test]
        fn no_filter_reaches_another_application(
            levels in prop::collection::vec(
                prop::sample::select(&["+", "#", "my-app", "other-app", "devices", "up", "$share", "g", "", "$SYS"][..]),
                1..7,
            ),
            topic in prop::sample::select(&["other-app/devices/d1/up", "other-app", "other-app/events/x", "/my-app", "$SYS/up"][..]),
        ) {
            let permissions = permissions("rw");
            let narrowed = permissions.narrow(&levels.join("/"));
            if permissions.may_subscribe(&narrowed) {
                prop_assert!(!topic_matches_filter(topic, split_share(&narrowed).1), "{narrowed} matches {topic}");
            }
            prop_assert_eq!(permissions.narrow(&narrowed), narrowed.clone(), "narrowing twice changed the filter");
        }
    }
}
