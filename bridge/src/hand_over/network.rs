//! A network whose devices belong to applications of this process: what it reports goes to their receivers, and
//! downlinks leave through it.

use std::sync::Arc;

use futures::future::BoxFuture;
use link::connection_state::ConnectionState;
use server::{status::ErrorChain, telemetry::Health};
use types::{AppId, DevEui, Kind, Kinded, NetworkDownlink, NetworkEvent, NetworkRefusal};

use super::traffic::TrafficState;
use crate::{codec::single_flight::Api, metrics};

/// Takes what a network reports about the devices of an application.
pub trait Receiver: Send + Sync {
    /// Takes an event for good, or says why not. The events of a device come one after the other, those of different
    /// devices at once. What may be accepted later comes again until it is.
    fn receive(&self, event: NetworkEvent) -> BoxFuture<'_, Result<(), NetworkRefusal>>;
}

/// Returns the refusal of a downlink whose device the API does not tell: the API has not got the downlink yet.
pub fn not_sent(api: Api, error: &client::Error) -> NetworkRefusal {
    let refusal = refusal(api, error);
    if refusal.may_be_taken() { NetworkRefusal::new(Kind::Unavailable, refusal.reason()) } else { refusal }
}

/// Turns an error of the API into the refusal of a downlink, and counts it. If the API key does not allow the downlink,
/// it waits for another key.
pub fn refusal(api: Api, error: &client::Error) -> NetworkRefusal {
    metrics::api_failed(error.kind());
    let Api { network, key_advice } = api;
    let reason = format!("{network} does not take the downlink: {}", ErrorChain(error));
    match error.kind() {
        _ if error.may_have_happened() => NetworkRefusal::new(Kind::Timeout, reason),
        Kind::Unauthenticated | Kind::Denied => NetworkRefusal::new(
            Kind::Unavailable,
            format_args!("{reason}: {key_advice}; it must be allowed to queue downlinks"),
        ),
        // Its database may be busy.
        Kind::Internal => NetworkRefusal::new(Kind::Unavailable, reason),
        kind => NetworkRefusal::new(kind, reason),
    }
}

/// An application of a network, and who takes what is reported about its devices.
#[derive(Clone)]
pub struct Route {
    /// The application's id or name in the network.
    pub application: String,
    /// The application of this process that it belongs to.
    pub app_id: AppId,
    /// Takes its events.
    pub receiver: Arc<dyn Receiver>,
}

/// The state of a network at one moment.
#[derive(Clone, Debug)]
pub struct NetworkState {
    /// Its connections, each with what it brings; none if the network only sends us webhooks.
    pub connections: Vec<(String, ConnectionState)>,
    /// State of the connection to its API; none if the settings have no API.
    pub api: Option<ConnectionState>,
    /// Number of messages that were received and are not acknowledged yet.
    pub in_progress: usize,
    /// Its traffic in both directions.
    pub traffic: TrafficState,
}

/// A connection to a network, which makes itself again when it is lost.
pub trait Network: Send + Sync {
    /// Hands a downlink over to the network, which sends it when the device listens; returns the id that reports about
    /// it will have: that of the downlink if the network lets us choose it. A refusal of [`Kind::Timeout`] means that
    /// the network may have taken it. Refused if the device belongs to an application of the network that is not this one's.
    fn send(
        &self,
        app_id: AppId,
        dev_eui: DevEui,
        downlink: NetworkDownlink,
    ) -> BoxFuture<'_, Result<String, NetworkRefusal>>;

    /// Reports its connections as health checks.
    fn report_to(&self, health: &Health);

    /// Returns its state at this moment.
    fn state(&self) -> NetworkState;

    /// Receives no more, and waits for the events in progress. Those that were not taken come again on the next start.
    fn stop(&self) -> BoxFuture<'_, ()>;
}
