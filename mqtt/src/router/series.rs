//! The metrics of single applications: a bounded number of series, and one for all applications without their own.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::Write,
    time::Duration,
};

use types::{AppId, Timestamp};

use crate::figures::Counted;

/// How many applications have series of their own.
const SERIES_MAX: usize = 100;

/// How long an application keeps its series after its last message. That is several intervals at which metrics are
/// usually collected, so nothing that was counted is missed.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// Stands for all applications without series of their own. No application can have this id.
const OTHER: &str = "_other";

const CONNECTIONS: &str = "airlock_mqtt_application_connections";
const QUEUED: &str = "airlock_mqtt_application_queued_messages";
const DELIVERED: &str = "airlock_mqtt_application_delivered_total";
const DROPPED: &str = "airlock_mqtt_application_dropped_total";

/// What an application has now, and what was counted since it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Current {
    pub(super) connections: usize,
    pub(super) queued: usize,
    pub(super) counted: Counted,
}

/// The applications that have series of their own, and the sum of the others.
#[derive(Default)]
pub(super) struct Series {
    own: BTreeMap<AppId, One>,
    other: Values,
}

struct One {
    values: Values,
    /// When its messages were last counted.
    active_at: Timestamp,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Values {
    connections: usize,
    queued: usize,
    delivered: u64,
    dropped: u64,
}

impl Values {
    fn add(&mut self, current: &Current) {
        self.connections += current.connections;
        self.queued += current.queued;
        self.delivered += current.counted.delivered;
        self.dropped += current.counted.dropped;
    }

    fn forget_current(&mut self) {
        (self.connections, self.queued) = (0, 0);
    }
}

impl Current {
    fn is_nothing(&self) -> bool {
        self.connections == 0 && self.queued == 0 && !self.is_active()
    }

    fn is_active(&self) -> bool {
        self.counted != Counted::default()
    }
}

impl Series {
    /// Adds what was counted of an application.
    pub(super) fn add(&mut self, app_id: &AppId, current: &Current, now: Timestamp) {
        if !self.own.contains_key(app_id) && !current.is_nothing() && !self.has_room(current.is_active(), now) {
            return self.other.add(current);
        }
        let one = match self.own.entry(app_id.clone()) {
            Entry::Occupied(one) => one.into_mut(),
            Entry::Vacant(_) if current.is_nothing() => return,
            Entry::Vacant(place) => place.insert(One { values: Values::default(), active_at: now }),
        };
        one.values.add(current);
        if current.is_active() {
            one.active_at = now;
        }
    }

    /// Whether another application can have series: one with messages takes the place of the one that has had none for
    /// longest.
    fn has_room(&mut self, is_active: bool, now: Timestamp) -> bool {
        if self.own.len() < SERIES_MAX {
            return true;
        }
        let is_idle = |one: &One| now.since(one.active_at) >= IDLE_MAX;
        let idle = self.own.iter().filter(|(_, one)| is_active && is_idle(one));
        let Some(longest) = idle.min_by_key(|(_, one)| one.active_at).map(|(app_id, _)| app_id.clone()) else {
            return false;
        };
        // What it counted is not added to the others, whose rates would show it as if it had happened now.
        if let Some(One { values, .. }) = self.own.remove(&longest) {
            self.other.connections += values.connections;
            self.other.queued += values.queued;
        }
        true
    }

    /// The metrics in the text format of Prometheus, with what all applications have now.
    pub(super) fn render(&mut self, applications: impl Iterator<Item = (AppId, Current)>, now: Timestamp) -> String {
        self.other.forget_current();
        self.own.values_mut().for_each(|one| one.values.forget_current());
        for (app_id, current) in applications {
            self.add(&app_id, &current, now);
        }
        self.own.retain(|_, One { values, active_at }| {
            values.connections > 0 || values.queued > 0 || now.since(*active_at) < IDLE_MAX
        });
        self.write()
    }

    fn write(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, value: fn(&Values) -> u64| {
            let own = self.own.iter().map(|(app_id, one)| (app_id.as_str(), one.values));
            let other = Some((OTHER, self.other)).filter(|(_, values)| *values != Values::default());
            let mut lines = own.chain(other).peekable();
            if lines.peek().is_some() {
                // Writing to a string cannot fail.
                _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            }
            for (application, values) in lines {
                _ = writeln!(text, "{name}{{application=\"{application}\"}} {}", value(&values));
            }
        };
        family(CONNECTIONS, "gauge", "Connected MQTT clients, by application", |it| it.connections as u64);
        family(QUEUED, "gauge", "Messages in memory that wait for MQTT clients, by application", |it| it.queued as u64);
        family(DELIVERED, "counter", "Messages that were written to MQTT clients, by application", |it| it.delivered);
        family(DROPPED, "counter", "Messages that MQTT clients did not get, by application", |it| it.dropped);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app_id(number: usize) -> AppId {
        format!("app-{number}").parse().unwrap()
    }

    fn current(connections: usize, delivered: u64) -> Current {
        Current { connections, queued: 0, counted: Counted { delivered, dropped: 0 } }
    }

    fn minutes(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * 60_000)
    }

    fn value(text: &str, name: &str, application: &str) -> Option<u64> {
        let start = format!("{name}{{application=\"{application}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&start))?.parse().ok()
    }

    fn applications(text: &str) -> usize {
        text.lines().filter(|line| line.starts_with(CONNECTIONS)).count()
    }

    #[test]
    fn applications_beyond_the_limit_are_one() {
        let mut series = Series::default();
        let all = |delivered| (0..SERIES_MAX + 20).map(move |number| (app_id(number), current(1, delivered)));
        for round in 1..=3 {
            let text = series.render(all(2), minutes(round));
            assert_eq!(applications(&text), SERIES_MAX + 1);
            assert_eq!(value(&text, CONNECTIONS, "app-0"), Some(1));
            assert_eq!(value(&text, DELIVERED, "app-0"), Some(2 * round as u64));
            assert_eq!(value(&text, CONNECTIONS, OTHER), Some(20));
            assert_eq!(value(&text, DELIVERED, OTHER), Some(40 * round as u64));
        }
    }

    #[test]
    fn an_active_application_takes_the_place_of_the_one_that_has_been_idle_for_longest() {
        let mut series = Series::default();
        for number in 0..SERIES_MAX {
            series.add(&app_id(number), &current(0, 7), minutes(number as i64 % 2));
        }
        let present = || (0..SERIES_MAX).map(|number| (app_id(number), current(1, 0)));
        let late = |delivered| [("late".parse().unwrap(), current(1, delivered))].into_iter();
        // All others have had messages lately, or it has none itself.
        assert_eq!(value(&series.render(present().chain(late(1)), minutes(9)), DELIVERED, "late"), None);
        assert_eq!(value(&series.render(present().chain(late(0)), minutes(10)), DELIVERED, "late"), None);
        let text = series.render(present().chain(late(5)), minutes(10));
        assert_eq!((value(&text, DELIVERED, "late"), value(&text, DELIVERED, "app-0")), (Some(5), None));
        // Its client is still connected, and what it counted did not happen again.
        assert_eq!((value(&text, CONNECTIONS, OTHER), value(&text, DELIVERED, OTHER)), (Some(1), Some(1)));
        assert_eq!(applications(&text), SERIES_MAX + 1);
    }

    #[test]
    fn an_application_without_clients_and_messages_loses_its_series() {
        let mut series = Series::default();
        let one = |connections, delivered| [(app_id(1), current(connections, delivered))].into_iter();
        assert_eq!(series.render(one(0, 0), minutes(0)), "");
        assert_eq!(value(&series.render(one(1, 3), minutes(0)), DELIVERED, "app-1"), Some(3));
        assert_eq!(value(&series.render(one(1, 0), minutes(30)), DELIVERED, "app-1"), Some(3));
        series.add(&app_id(1), &current(0, 1), minutes(31));
        assert_eq!(value(&series.render([].into_iter(), minutes(32)), DELIVERED, "app-1"), Some(4));
        assert_eq!(series.render([].into_iter(), minutes(50)), "");
    }
}
