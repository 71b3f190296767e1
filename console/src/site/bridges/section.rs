//! A network as a section of the page, with times and rates in units that people read.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    site::page::{Time, shown},
    status::{ConnectionStatus, Count, DroppedEventStatus, EventStatus, NetworkStatus, RouteStatus},
};

/// A network.
pub(super) struct Section {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) addresses: Vec<(String, String)>,
    /// True if its events come as webhooks, and not over a connection.
    pub(super) sends_webhooks: bool,
    /// Those of its events, and that to its API.
    pub(super) connections: Vec<Connection>,
    pub(super) routes: Vec<Route>,
    pub(super) received: u64,
    pub(super) taken: u64,
    pub(super) others: Vec<Count>,
    pub(super) dropped: Vec<DroppedEvent>,
    pub(super) in_progress: u64,
    pub(super) last: Option<Time>,
    /// Of the last minute, and of the last five.
    pub(super) rates: [String; 2],
    /// Empty if no event has had a time.
    pub(super) lag: String,
    /// Number of downlinks that were sent and refused, or why there are none.
    pub(super) downlinks: String,
}

/// A row of the table of connections.
pub(super) struct Connection {
    pub(super) name: String,
    pub(super) is_connected: bool,
    pub(super) since: Time,
    pub(super) failure: String,
}

/// A row of the table of events that nobody took.
pub(super) struct DroppedEvent {
    pub(super) time: Time,
    pub(super) device: String,
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

/// A row of the table of routes.
pub(super) struct Route {
    pub(super) application: String,
    pub(super) app_id: String,
    /// True if the viewer has rights to the application here.
    pub(super) is_own: bool,
    pub(super) registers: bool,
    pub(super) decoded: u64,
    pub(super) failed: u64,
    pub(super) invalid: u64,
    pub(super) not_converted: u64,
}

impl Section {
    pub(super) fn of(network: NetworkStatus, own: &BTreeSet<String>) -> Self {
        let NetworkStatus { name, kind, addresses, connections, api, routes, events, downlinks } = network;
        let lag = lag(&events);
        let EventStatus { received, taken, others, dropped, in_progress, last, per_second, .. } = events;
        Self {
            name: shown(&name),
            kind: shown(&kind),
            addresses: addresses.iter().map(|(role, address)| (shown(role), shown(address))).collect(),
            sends_webhooks: connections.is_empty(),
            connections: connections.into_iter().chain(api).map(Connection::of).collect(),
            routes: routes.into_iter().map(|route| Route::of(route, own)).collect(),
            received,
            taken,
            others: others.into_iter().map(|Count { what, count }| Count { what: shown(&what), count }).collect(),
            dropped: dropped.into_iter().map(DroppedEvent::of).collect(),
            in_progress,
            last: last.map(|last| Time(last.as_nanos())),
            rates: per_second.map(|rate| format!("{rate:.2}/s")),
            lag,
            downlinks: match downlinks {
                Ok((sent, 0)) => format!("{sent} sent"),
                Ok((sent, refused)) => format!("{sent} sent, {refused} attempts refused or without an answer"),
                Err(reason) => format!("cannot be sent: {}", shown(&reason)),
            },
        }
    }

    /// Returns true if all connections are made.
    pub(super) fn is_connected(&self) -> bool {
        self.connections.iter().all(|connection| connection.is_connected)
    }
}

impl Connection {
    fn of(connection: ConnectionStatus) -> Self {
        let ConnectionStatus { name, is_connected, since, failure } = connection;
        let failure = failure.map(|failure| shown(&failure)).unwrap_or_default();
        Self { name: shown(&name), is_connected, since: Time(since.as_nanos()), failure }
    }
}

impl DroppedEvent {
    fn of(event: DroppedEventStatus) -> Self {
        let DroppedEventStatus { time, device, reason, detail } = event;
        Self { time: Time(time.as_nanos()), device: shown(&device), reason, detail: shown(&detail) }
    }
}

impl Route {
    fn of(route: RouteStatus, own: &BTreeSet<String>) -> Self {
        let RouteStatus { application, app_id, registers, decoded, failed, invalid, not_converted } = route;
        let is_own = own.contains(&app_id);
        let (application, app_id) = (shown(&application), shown(&app_id));
        Self { application, app_id, is_own, registers, decoded, failed, invalid, not_converted }
    }
}

fn lag(events: &EventStatus) -> String {
    let last = events.last_lag.map(|last| format!("{} of the last event", duration(last)));
    let recent = events.recent_lag.map(|(mean, max)| {
        format!("{} on average and {} at most in the last five minutes", duration(mean), duration(max))
    });
    last.into_iter().chain(recent).collect::<Vec<_>>().join(", ")
}

/// A duration in one or two units.
fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_the_units_that_matter() {
        let shown = [0, 999, 1000, 59_940, 60_000, 3_599_000, 3_600_000, 90_061_000];
        let shown = shown.map(|millis| duration(Duration::from_millis(millis)));
        assert_eq!(shown, ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 0 s", "59 min 59 s", "1 h 0 min", "1 d 1 h"]);
    }

    #[test]
    fn a_lag_says_only_what_is_known() {
        let ms = Duration::from_millis;
        let mut events = EventStatus::default();
        assert_eq!(lag(&events), "");
        events.last_lag = Some(ms(20));
        assert_eq!(lag(&events), "20 ms of the last event");
        events.recent_lag = Some((ms(30), ms(1500)));
        assert_eq!(
            lag(&events),
            "20 ms of the last event, 30 ms on average and 1.5 s at most in the last five minutes"
        );
    }
}
