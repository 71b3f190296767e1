//! A network that is tried before it is in the settings, with credentials that are kept nowhere.

use types::Secret;

/// A network to try.
#[derive(Clone, Debug)]
pub enum NewNetwork {
    /// ChirpStack 4.
    ChirpStack {
        /// URL of the broker on which it publishes events.
        mqtt_url: String,
        /// User and password for the broker, if it wants them.
        login: Option<(String, Secret)>,
        /// URL of the API.
        api_url: String,
        /// An API key.
        api_key: Secret,
    },
    /// The Things Stack 3.
    ThingsStack {
        /// URL of the cluster.
        api_url: String,
        /// URL of the MQTT server; empty for that of the cluster.
        mqtt_url: String,
        /// The id and tenant of an application.
        application: String,
        /// An API key of the application.
        api_key: Secret,
    },
}

/// The result of trying a network.
#[derive(Clone, Debug)]
pub enum NetworkTrial {
    /// It was not tried: the application that would get its devices is not registered.
    NotRegistered,
    /// It cannot be used, for this reason.
    Failed(String),
    /// It is connected, and no uplink came.
    Silent,
    /// It is connected, and this uplink came.
    Heard(TriedUplink),
}

/// An uplink of a network that is tried.
#[derive(Clone, Debug)]
pub struct TriedUplink {
    /// The id of its application in the network.
    pub application_id: String,
    /// The name of that application; empty if the network does not say it.
    pub application_name: String,
    /// The name of its codec; empty if there is none.
    pub codec: String,
    /// Result of our run of the codec: JSON, or the reason why there is none.
    pub ours: Result<String, String>,
    /// Result that the network had: JSON, or the reason why there is none.
    pub theirs: Result<String, String>,
}
