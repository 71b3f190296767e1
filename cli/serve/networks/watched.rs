//! A network as its operators see it, and its metrics.

use std::sync::Arc;

use bridge::{Network, NetworkState};
use server::telemetry::{Exposition, MetricKind};

use super::route::WatchedRoute;

const CONNECTED: &str = "airlock_bridge_network_connected";
const API_CONNECTED: &str = "airlock_bridge_network_api_connected";
const EVENTS: &str = "airlock_bridge_network_events_total";
const DOWNLINKS: &str = "airlock_bridge_network_downlinks_total";
const IN_PROGRESS: &str = "airlock_bridge_network_in_progress";
const LAG: &str = "airlock_bridge_network_lag_seconds";

/// A network whose devices belong to applications of this process.
pub(in crate::serve) struct WatchedNetwork {
    /// The name that people know it by, and that its metrics have. No other network of this process has it.
    pub(in crate::serve) name: String,
    /// Its description in the settings.
    pub(in crate::serve) description: NetworkDescription,
    pub(in crate::serve) routes: Vec<WatchedRoute>,
    pub(in crate::serve) network: Arc<dyn Network>,
}

/// A network as the settings describe it, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve) struct NetworkDescription {
    /// The name of the product.
    pub(in crate::serve) kind: &'static str,
    /// Addresses, each with what it is for.
    pub(in crate::serve) addresses: Vec<(&'static str, String)>,
    /// The reason why downlinks cannot be sent, if they cannot.
    pub(in crate::serve) no_downlinks: Option<&'static str>,
}

/// A value of a metric, with the result that it counts, if it counts results.
type Value = (Option<&'static str>, f64);

/// A metric of each network.
struct Metric {
    name: &'static str,
    kind: MetricKind,
    help: &'static str,
    values: fn(&NetworkState) -> Vec<Value>,
}

const METRICS: [Metric; 6] = [
    Metric {
        name: CONNECTED,
        kind: MetricKind::Gauge,
        help: "Share of the connections over which a network sends events that are made; none if it only sends webhooks",
        values: |state| {
            let made = state.connections.iter().filter(|(_, connection)| connection.is_connected).count();
            let all = state.connections.len();
            if all == 0 { Vec::new() } else { vec![(None, made as f64 / all as f64)] }
        },
    },
    Metric {
        name: API_CONNECTED,
        kind: MetricKind::Gauge,
        help: "1 if the API of a network can be used, otherwise 0; none if the settings have none",
        values: |state| {
            let connected = state.api.as_ref().map(|api| (None, f64::from(u8::from(api.is_connected))));
            connected.into_iter().collect()
        },
    },
    Metric {
        name: EVENTS,
        kind: MetricKind::Counter,
        help: "Events of a network by result: taken, duplicate, ignored, malformed, refused or foreign",
        values: |state| {
            let traffic = &state.traffic;
            vec![
                (Some("taken"), traffic.taken as f64),
                (Some("duplicate"), traffic.duplicates as f64),
                (Some("ignored"), traffic.ignored as f64),
                (Some("malformed"), traffic.malformed as f64),
                (Some("refused"), traffic.refused as f64),
                (Some("foreign"), traffic.foreign as f64),
            ]
        },
    },
    Metric {
        name: DOWNLINKS,
        kind: MetricKind::Counter,
        help: "Attempts to send a downlink to a network by result: taken or refused",
        values: |state| {
            let traffic = &state.traffic;
            vec![(Some("taken"), traffic.sent as f64), (Some("refused"), traffic.unsent as f64)]
        },
    },
    Metric {
        name: IN_PROGRESS,
        kind: MetricKind::Gauge,
        help: "Messages of a network that are not acknowledged yet",
        values: |state| vec![(None, state.in_progress as f64)],
    },
    Metric {
        name: LAG,
        kind: MetricKind::Gauge,
        help: "Greatest time of the last five minutes from the reception of an event by its network until it was taken",
        values: |state| state.traffic.lag.max.map(|lag| (None, lag.as_secs_f64())).into_iter().collect(),
    },
];

/// The metrics of networks, in the text format of Prometheus. The settings bound their number.
pub(super) fn render(networks: &[WatchedNetwork]) -> String {
    let states: Vec<_> = networks.iter().map(|network| (network.name.as_str(), network.network.state())).collect();
    render_states(&states)
}

fn render_states(states: &[(&str, NetworkState)]) -> String {
    let mut text = Exposition::default();
    for Metric { name, kind, help, values } in METRICS {
        let samples = states.iter().flat_map(|(network, state)| {
            values(state).into_iter().map(move |(result, value)| (labels(network, result), value))
        });
        text.add((kind, name), help, samples);
    }
    text.into_text()
}

fn labels<'a>(network: &'a str, result: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    [("network", network)].into_iter().chain(result.map(|result| ("result", result))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bridge::{ConnectionState, Lag, TrafficState};

    use super::*;

    fn connection(is_connected: bool) -> ConnectionState {
        ConnectionState { is_connected, lasted: Duration::ZERO, failure: None }
    }

    fn state(connected: &[bool], lag: Option<Duration>) -> NetworkState {
        let events = |is_connected: &bool| ("events".to_owned(), connection(*is_connected));
        NetworkState {
            connections: connected.iter().map(events).collect(),
            api: connected.last().copied().map(connection),
            in_progress: 4,
            traffic: TrafficState {
                taken: 7,
                malformed: 2,
                lag: Lag { max: lag, ..Lag::default() },
                ..TrafficState::default()
            },
        }
    }

    #[test]
    fn each_network_has_series_of_its_own_and_none_for_what_is_not_known() {
        let lag = Some(Duration::from_millis(1500));
        let text = render_states(&[("one", state(&[true, false], lag)), ("other", state(&[], None))]);
        let samples: Vec<_> = text.lines().filter(|line| line.starts_with("airlock")).collect();
        for expected in [
            "airlock_bridge_network_connected{network=\"one\"} 0.5",
            "airlock_bridge_network_api_connected{network=\"one\"} 0",
            "airlock_bridge_network_events_total{network=\"one\",result=\"taken\"} 7",
            "airlock_bridge_network_events_total{network=\"other\",result=\"malformed\"} 2",
            "airlock_bridge_network_downlinks_total{network=\"one\",result=\"refused\"} 0",
            "airlock_bridge_network_in_progress{network=\"other\"} 4",
            "airlock_bridge_network_lag_seconds{network=\"one\"} 1.5",
        ] {
            assert!(samples.contains(&expected), "{expected}: {text}");
        }
        let connected = samples.iter().filter(|line| line.starts_with(CONNECTED)).count();
        let lags = samples.iter().filter(|line| line.starts_with(LAG)).count();
        assert_eq!((connected, lags), (1, 1), "{text}");
        assert_eq!(text.matches("# TYPE ").count(), METRICS.len());
        assert_eq!(render_states(&[]), "");
    }
}
