//! The metrics of single applications: a bounded number of series, and one for all applications without their own.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use server::telemetry::{
    Exposition,
    MetricKind::{Counter, Gauge},
};
use types::{AppId, Timestamp};

use crate::metrics::counters::Counts;

/// Maximum number of applications with series of their own.
const SERIES_MAX: usize = 100;

/// Time that an application keeps its series after its last message: several of the usual intervals at which metrics
/// are collected, so that no count is missed.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// Stands for all applications without series of their own. No application can have this id.
const OTHER: &str = "_other";

const CONNECTIONS: &str = "airlock_mqtt_application_connections";
const QUEUED: &str = "airlock_mqtt_application_queued_messages";
const DELIVERED: &str = "airlock_mqtt_application_delivered_total";
const DROPPED: &str = "airlock_mqtt_application_dropped_total";

/// The applications that have series of their own, and the sum of the others.
#[derive(Default)]
pub(super) struct Series {
    own: BTreeMap<AppId, OwnSeries>,
    other: Counts,
}

struct OwnSeries {
    counts: Counts,
    /// Time when its messages were last counted.
    active_at: Timestamp,
}

impl Series {
    /// Adds what an application has, and what was counted of it since it was last added.
    pub(super) fn add(&mut self, app_id: &AppId, counts: &Counts, now: Timestamp) {
        if !self.own.contains_key(app_id) && !counts.is_zero() && !self.has_room(counts.has_counted(), now) {
            return self.other.add(counts);
        }
        let own = match self.own.entry(app_id.clone()) {
            Entry::Occupied(own) => own.into_mut(),
            Entry::Vacant(_) if counts.is_zero() => return,
            Entry::Vacant(place) => place.insert(OwnSeries { counts: Counts::default(), active_at: now }),
        };
        own.counts.add(counts);
        if counts.has_counted() {
            own.active_at = now;
        }
    }

    /// Returns true if another application can have series. One with messages replaces the one that has had none for
    /// longest.
    fn has_room(&mut self, is_active: bool, now: Timestamp) -> bool {
        if self.own.len() < SERIES_MAX {
            return true;
        }
        let is_idle = |own: &OwnSeries| now.since(own.active_at) >= IDLE_MAX;
        let idle = self.own.iter().filter(|(_, own)| is_active && is_idle(own));
        let Some(longest) = idle.min_by_key(|(_, own)| own.active_at).map(|(app_id, _)| app_id.clone()) else {
            return false;
        };
        // What it counted is not added to the others, whose rates would show it as if it had happened now.
        if let Some(OwnSeries { counts, .. }) = self.own.remove(&longest) {
            self.other.connections += counts.connections;
            self.other.queued += counts.queued;
        }
        true
    }

    /// The metrics in the text format of Prometheus, with what all applications have now.
    pub(super) fn render(&mut self, applications: &[(AppId, Counts)], now: Timestamp) -> String {
        self.other.forget_now();
        self.own.values_mut().for_each(|own| own.counts.forget_now());
        for (app_id, counts) in applications {
            self.add(app_id, counts, now);
        }
        self.own.retain(|_, OwnSeries { counts, active_at }| {
            counts.connections > 0 || counts.queued > 0 || now.since(*active_at) < IDLE_MAX
        });
        self.write()
    }

    fn write(&self) -> String {
        let mut text = Exposition::default();
        let mut add = |kind, name, help, value: fn(&Counts) -> u64| {
            let own = self.own.iter().map(|(app_id, own)| (app_id.as_str(), own.counts));
            let other = Some((OTHER, self.other)).filter(|(_, counts)| !counts.is_zero());
            let samples = own.chain(other).map(|(app_id, counts)| ([("application", app_id)], value(&counts)));
            text.add((kind, name), help, samples);
        };
        add(Gauge, CONNECTIONS, "Connected MQTT clients, by application", |it| it.connections as u64);
        add(Gauge, QUEUED, "Messages in memory that wait for MQTT clients, by application", |it| it.queued as u64);
        add(Counter, DELIVERED, "Messages that were written to MQTT clients, by application", |it| it.delivered);
        add(Counter, DROPPED, "Messages that MQTT clients did not get, by application", |it| it.dropped);
        text.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app_id(number: usize) -> AppId {
        format!("app-{number}").parse().unwrap()
    }

    fn counts(connections: usize, delivered: u64) -> Counts {
        Counts { connections, delivered, ..Counts::default() }
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
        let all =
            |delivered| (0..SERIES_MAX + 20).map(|number| (app_id(number), counts(1, delivered))).collect::<Vec<_>>();
        for round in 1..=3 {
            let text = series.render(&all(2), minutes(round));
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
            series.add(&app_id(number), &counts(0, 7), minutes(number as i64 % 2));
        }
        let and_late = |delivered| {
            let present = (0..SERIES_MAX).map(|number| (app_id(number), counts(1, 0)));
            present.chain([("late".parse().unwrap(), counts(1, delivered))]).collect::<Vec<_>>()
        };
        // All others have had messages lately, or it has none itself.
        assert_eq!(value(&series.render(&and_late(1), minutes(9)), DELIVERED, "late"), None);
        assert_eq!(value(&series.render(&and_late(0), minutes(10)), DELIVERED, "late"), None);
        let text = series.render(&and_late(5), minutes(10));
        assert_eq!((value(&text, DELIVERED, "late"), value(&text, DELIVERED, "app-0")), (Some(5), None));
        // Its client is still connected, and what it counted did not happen again.
        assert_eq!((value(&text, CONNECTIONS, OTHER), value(&text, DELIVERED, OTHER)), (Some(1), Some(1)));
        assert_eq!(applications(&text), SERIES_MAX + 1);
    }

    #[test]
    fn an_application_without_clients_and_messages_loses_its_series() {
        let mut series = Series::default();
        let one = |connections, delivered| [(app_id(1), counts(connections, delivered))];
        assert_eq!(series.render(&one(0, 0), minutes(0)), "");
        assert_eq!(value(&series.render(&one(1, 3), minutes(0)), DELIVERED, "app-1"), Some(3));
        assert_eq!(value(&series.render(&one(1, 0), minutes(30)), DELIVERED, "app-1"), Some(3));
        series.add(&app_id(1), &counts(0, 1), minutes(31));
        assert_eq!(value(&series.render(&[], minutes(32)), DELIVERED, "app-1"), Some(4));
        assert_eq!(series.render(&[], minutes(50)), "");
    }
}
