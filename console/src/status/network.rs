//! Networks, as the operators of their process see them. Counts are those since its start.

use std::time::Duration;

use types::Timestamp;

use super::Count;

/// The networks whose devices belong to applications of a process.
#[derive(Clone, Debug, Default)]
pub struct NetworksStatus {
    /// Each of them.
    pub networks: Vec<NetworkStatus>,
    /// Networks whose own results are compared with our runs of the same codecs. They bring no devices.
    pub shadows: Vec<ShadowStatus>,
    /// Events and failures of all of them together, and of the external broker.
    pub counts: Vec<Count>,
}

/// A network: its connections, what it brought, and to whom.
#[derive(Clone, Debug)]
pub struct NetworkStatus {
    /// The name that people know it by, and that its metrics have.
    pub name: String,
    /// The name of the product.
    pub kind: String,
    /// Addresses, each behind what it is for. They have no secrets.
    pub addresses: Vec<(String, String)>,
    /// The connections over which its events come; none if it only sends us webhooks.
    pub connections: Vec<ConnectionStatus>,
    /// Its API; none if the settings have none.
    pub api: Option<ConnectionStatus>,
    /// Its applications.
    pub routes: Vec<RouteStatus>,
    /// Its events, with their rate and lag.
    pub events: EventStatus,
    /// Number of downlinks that it took, and of attempts that it refused; or the reason why there are none.
    pub downlinks: Result<(u64, u64), String>,
}

/// A connection to a network.
#[derive(Clone, Debug)]
pub struct ConnectionStatus {
    /// Name for people.
    pub name: String,
    /// True while it is made.
    pub is_connected: bool,
    /// The time since which that has been so.
    pub since: Timestamp,
    /// The reason why the last connection or attempt ended; none if there is a connection, or the first is being made.
    pub failure: Option<String>,
}

/// Events of a network, with their rate and lag.
#[derive(Clone, Debug, Default)]
pub struct EventStatus {
    /// Number of events that were dealt with.
    pub received: u64,
    /// Number of events that the handler took.
    pub taken: u64,
    /// Results of the others.
    pub others: Vec<Count>,
    /// Some of those that nobody took, the newest first.
    pub dropped: Vec<DroppedEventStatus>,
    /// Number of messages that are not acknowledged yet.
    pub in_progress: u64,
    /// The time of the last event.
    pub last: Option<Timestamp>,
    /// Events that the handler took, per second, in the last minute and in the last five.
    pub per_second: [f64; 2],
    /// The time from the reception of the last event by the network until the handler took it.
    pub last_lag: Option<Duration>,
    /// Mean and maximum of that in the last five minutes; none if there was no event that has a time.
    pub recent_lag: Option<(Duration, Duration)>,
}

/// An event that nobody took.
#[derive(Clone, Debug)]
pub struct DroppedEventStatus {
    /// The time at which it was dealt with.
    pub time: Timestamp,
    /// Its device.
    pub device: String,
    /// The reason, one of a few.
    pub reason: &'static str,
    /// The reason in detail.
    pub detail: String,
}

/// An application of a network, and the one here that has its devices.
#[derive(Clone, Debug)]
pub struct RouteStatus {
    /// The id or name of the application there.
    pub application: String,
    /// The id of the application here.
    pub app_id: String,
    /// True if a device is registered when it is first heard.
    pub registers: bool,
    /// Number of uplinks that were decoded.
    pub decoded: u64,
    /// Number of uplinks whose payload functions failed.
    pub failed: u64,
    /// Number of uplinks for which the validator returned false.
    pub invalid: u64,
    /// Number of uplinks for which there are no payload functions.
    pub not_converted: u64,
}

/// A network whose own results are compared with our runs of the same codecs.
#[derive(Clone, Debug)]
pub struct ShadowStatus {
    /// The name that people know it by.
    pub name: String,
    /// The name of the product.
    pub kind: String,
    /// Addresses, each behind what it is for. They have no secrets.
    pub addresses: Vec<(String, String)>,
    /// The state of its connections.
    pub connection: ShadowConnection,
    /// The start of the comparison.
    pub since: Timestamp,
    /// The number of messages by result, as a sentence.
    pub summary: String,
    /// Those codecs that differ most or take most.
    pub codecs: Vec<ShadowCodecStatus>,
}

/// The state of the connections of a shadow.
#[derive(Clone, Debug)]
pub enum ShadowConnection {
    /// All are made.
    Connected,
    /// Some are not, for this reason, if it is known.
    Disconnected(Option<String>),
    /// It cannot start yet, for this reason.
    NotStarted(String),
}

/// Differences that a codec makes in a shadow run, and its cost.
#[derive(Clone, Debug)]
pub struct ShadowCodecStatus {
    /// Its name.
    pub name: String,
    /// The number of its messages by result, as a sentence.
    pub summary: String,
    /// Differences and failures by likely cause.
    pub causes: Vec<Count>,
    /// The longest time of a message in the sandbox, in microseconds.
    pub time_us_max: u64,
    /// The most fuel of a message.
    pub fuel_max: u64,
}
