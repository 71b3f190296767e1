//! Whose topics are whose: what an application may subscribe to and publish to.

use std::{fmt, str::FromStr};

use types::{AppId, ApplicationRight, Claims, DevId};

/// The most bytes that a topic or a filter may have.
const TOPIC_BYTES_MAX: usize = 256;

/// The most levels that a filter may have.
const LEVELS_MAX: usize = 8;

/// An application at the broker, and what its credential may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenant {
    pub(crate) app_id: AppId,
    /// Whether it may subscribe to what its devices send.
    pub(crate) reads: bool,
    /// Whether it may publish downlinks.
    pub(crate) writes: bool,
}

impl Tenant {
    /// What a checked credential may do with the messages of `app_id`.
    pub(crate) fn new(app_id: AppId, claims: &Claims) -> Self {
        let reads = claims.allows(&app_id, ApplicationRight::MessagesUpRead);
        let writes = claims.allows(&app_id, ApplicationRight::MessagesDownWrite);
        Self { app_id, reads, writes }
    }

    /// Whether it has any business at the broker.
    pub(crate) fn may_connect(&self) -> bool {
        self.reads || self.writes
    }

    /// Whether it may publish to `topic`: the `down` topic of its devices, and no other.
    pub(crate) fn may_publish(&self, topic: &str) -> bool {
        let mut levels = topic.split('/');
        let (app_id, devices, dev_id) = (levels.next(), levels.next(), levels.next());
        self.writes
            && topic.len() <= TOPIC_BYTES_MAX
            && app_id == Some(self.app_id.as_str())
            && devices == Some("devices")
            && dev_id.is_some_and(|dev_id| dev_id.parse::<DevId>().is_ok())
            && levels.eq(["down"])
    }

    /// Whether everything that `filter` matches is its own; shared filters count without their group.
    pub(crate) fn may_subscribe(&self, filter: &str) -> bool {
        let (_, filter) = split_share(filter);
        self.reads
            && filter.len() <= TOPIC_BYTES_MAX
            && filter.split('/').count() <= LEVELS_MAX
            && filter.split('/').next() == Some(self.app_id.as_str())
    }

    /// Narrows a filter that asks for every application to this one.
    ///
    /// Clients in the field subscribe to `+/devices/+/up` and even to `#`, and mean their own application.
    pub(crate) fn scope(&self, filter: &str) -> String {
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
fn split_share(filter: &str) -> (&str, &str) {
    let group = filter.strip_prefix("$share/").and_then(|rest| rest.find('/'));
    filter.split_at(group.map_or(0, |end| "$share/".len() + end + 1))
}

/// A tenant as the engine keeps it between calls: `<app_id>:<r or -><w or ->`.
impl fmt::Display for Tenant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flag = |set, letter| if set { letter } else { '-' };
        write!(out, "{}:{}{}", self.app_id, flag(self.reads, 'r'), flag(self.writes, 'w'))
    }
}

/// The text names no tenant; there is nothing more to say about it.
#[derive(Debug)]
pub(crate) struct NoTenant;

impl FromStr for Tenant {
    type Err = NoTenant;

    fn from_str(text: &str) -> Result<Self, NoTenant> {
        let (app_id, rights) = text.split_once(':').ok_or(NoTenant)?;
        let (reads, writes) = match rights {
            "rw" => (true, true),
            "r-" => (true, false),
            "-w" => (false, true),
            _ => return Err(NoTenant),
        };
        Ok(Self { app_id: app_id.parse().map_err(|_| NoTenant)?, reads, writes })
    }
}

#[cfg(test)]
mod tests {
    use mqtt5::topic_matches_filter;
    use proptest::prelude::*;

    use super::*;

    fn tenant(rights: &str) -> Tenant {
        format!("my-app:{rights}").parse().unwrap()
    }

    #[test]
    fn wildcards_in_the_first_level_mean_the_own_application() {
        for (asked, granted) in [
            ("#", "my-app/#"),
            ("+", "my-app"),
            ("+/#", "my-app/#"),
            ("+/devices/+/up", "my-app/devices/+/up"),
            ("+/devices/+/events/#", "my-app/devices/+/events/#"),
            ("$share/workers/+/devices/+/up", "$share/workers/my-app/devices/+/up"),
            ("$share/workers/#", "$share/workers/my-app/#"),
        ] {
            let scoped = tenant("r-").scope(asked);
            assert_eq!(scoped, granted);
            assert!(tenant("r-").may_subscribe(&scoped), "{scoped}");
        }
    }

    #[test]
    fn other_filters_stay_and_only_the_own_ones_are_allowed() {
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
            let scoped = tenant("r-").scope(filter);
            assert_eq!(scoped, filter);
            assert_eq!(tenant("r-").may_subscribe(&scoped), allowed, "{filter}");
            assert!(!tenant("-w").may_subscribe(&scoped), "{filter}");
        }
    }

    #[test]
    fn only_the_down_topic_of_an_own_device_takes_messages() {
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
            assert_eq!(tenant("-w").may_publish(topic), allowed, "{topic}");
            assert!(!tenant("r-").may_publish(topic), "{topic}");
        }
    }

    #[test]
    fn a_tenant_reads_back_and_nothing_else_is_one() {
        for text in ["my-app:rw", "my-app:r-", "my-app:-w"] {
            assert_eq!(text.parse::<Tenant>().unwrap().to_string(), text);
        }
        for text in ["my-app", "my-app:", "my-app:--", "My App:rw", ":rw", "handler"] {
            assert!(text.parse::<Tenant>().is_err(), "{text}");
        }
    }

    proptest! {
        /// Whatever is asked for, what is granted never matches a topic of somebody else.
        #[test]
        fn no_filter_reaches_another_application(
            levels in prop::collection::vec(
                prop::sample::select(&["+", "#", "my-app", "other-app", "devices", "up", "$share", "g", "", "$SYS"][..]),
                1..7,
            ),
            topic in prop::sample::select(&["other-app/devices/d1/up", "other-app", "other-app/events/x", "/my-app", "$SYS/up"][..]),
        ) {
            let tenant = tenant("rw");
            let scoped = tenant.scope(&levels.join("/"));
            if tenant.may_subscribe(&scoped) {
                prop_assert!(!topic_matches_filter(topic, split_share(&scoped).1), "{scoped} matches {topic}");
            }
            prop_assert_eq!(tenant.scope(&scoped), scoped.clone(), "scoping twice is scoping once");
        }
    }
}
