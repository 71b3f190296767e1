//! The state of a network for operators.

use bridge::{ConnectionState, DroppedEvent, NetworkState, TrafficState};
use console::{
    ConnectionStatus, Count, DroppedEventStatus, EventStatus, NetworkStatus, RouteStatus, ShadowCodecStatus,
    ShadowStatus,
};
use history::Outcome;
use types::Timestamp;

use crate::{
    serve::networks::{Shadow, WatchedNetwork, WatchedRoute},
    services::shadow_report::Codec,
};

/// Maximum number of codecs of a shadow.
const CODECS_MAX: usize = 20;

pub(super) fn status(watched: &WatchedNetwork, now: Timestamp) -> NetworkStatus {
    let WatchedNetwork { name, description, routes, network } = watched;
    let NetworkState { connections, api, in_progress, traffic } = network.state();
    let downlinks = match description.no_downlinks {
        Some(reason) => Err(reason.to_owned()),
        None => Ok((traffic.sent, traffic.unsent)),
    };
    NetworkStatus {
        name: name.clone(),
        kind: description.kind.to_owned(),
        addresses: addresses(&description.addresses),
        connections: connections.into_iter().map(|(name, state)| connection(name, state, now)).collect(),
        api: api.map(|state| connection("API".to_owned(), state, now)),
        routes: routes.iter().map(route).collect(),
        events: events(traffic, in_progress),
        downlinks,
    }
}

/// The report of a shadow, as far as it has come.
pub(super) fn shadow_status(shadow: &Shadow) -> ShadowStatus {
    let (since, summary, codecs) = shadow.read(|report| {
        let codecs = report.listed().take(CODECS_MAX).map(codec).collect();
        (report.started, report.line(), codecs)
    });
    ShadowStatus {
        name: shadow.name.clone(),
        kind: shadow.description.kind.to_owned(),
        addresses: addresses(&shadow.description.addresses),
        connection: shadow.connection(),
        since,
        summary,
        codecs,
    }
}

fn codec(codec: &Codec) -> ShadowCodecStatus {
    let causes = codec.causes.iter();
    ShadowCodecStatus {
        name: codec.name.clone(),
        summary: codec.line(),
        causes: causes.map(|(what, count)| Count { what: (*what).to_owned(), count: *count }).collect(),
        time_us_max: codec.microseconds.max,
        fuel_max: codec.fuel.max,
    }
}

fn addresses(addresses: &[(&'static str, String)]) -> Vec<(String, String)> {
    addresses.iter().map(|(role, url)| ((*role).to_owned(), url.clone())).collect()
}

fn connection(name: String, state: ConnectionState, now: Timestamp) -> ConnectionStatus {
    let ConnectionState { is_connected, lasted, failure } = state;
    ConnectionStatus { name, is_connected, since: now.minus(lasted), failure }
}

fn route(route: &WatchedRoute) -> RouteStatus {
    let [decoded, failed, invalid, not_converted] =
        [Outcome::Decoded, Outcome::Failed, Outcome::Invalid, Outcome::NotConverted]
            .map(|made| route.uplinks.get(made));
    RouteStatus {
        application: route.application.clone(),
        app_id: route.app_id.to_string(),
        registers: route.registers,
        decoded,
        failed,
        invalid,
        not_converted,
    }
}

fn events(traffic: TrafficState, in_progress: usize) -> EventStatus {
    let (received, dropped) = (traffic.received(), traffic.dropped.into_iter());
    let others = [("duplicate", traffic.duplicates)]
        .into_iter()
        .chain(dropped.map(|(reason, count)| (reason.in_words(), count)))
        .chain([("attempts that are repeated", traffic.retried)])
        .filter(|(_, count)| *count > 0);
    EventStatus {
        received,
        taken: traffic.taken,
        others: others.map(|(what, count)| Count { what: what.to_owned(), count }).collect(),
        dropped: traffic.newest_dropped.into_iter().map(dropped_event).collect(),
        in_progress: in_progress as u64,
        last: traffic.last,
        per_second: traffic.per_second,
        last_lag: traffic.lag.last,
        recent_lag: traffic.lag.mean.zip(traffic.lag.max),
    }
}

fn dropped_event(event: DroppedEvent) -> DroppedEventStatus {
    let DroppedEvent { time, reason, device, detail } = event;
    DroppedEventStatus { time, device, reason: reason.in_words(), detail }
}

#[cfg(test)]
mod tests {
    use bridge::DropReason;

    use super::*;

    #[test]
    fn only_what_happened_to_events_is_told() {
        let dropped = vec![(DropReason::Unreadable, 2)];
        let traffic = TrafficState { taken: 5, malformed: 2, retried: 1, dropped, ..TrafficState::default() };
        let events = events(traffic, 3);
        let others: Vec<_> = events.others.iter().map(|other| (other.what.as_str(), other.count)).collect();
        assert_eq!(others, [("cannot be read", 2), ("attempts that are repeated", 1)]);
        assert_eq!((events.received, events.taken, events.in_progress), (7, 5, 3));
    }
}
