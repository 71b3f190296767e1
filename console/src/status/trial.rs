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
        /// The id or name of an application.
        application: String,
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
#[derive(Clone, Debug, Default)]
pub struct NetworkTrial {
    /// The checks in order. A network is not connected after a check that fails.
    pub checks: Vec<TrialCheck>,
    /// The first uplink; none if none came, or a check failed.
    pub uplink: Option<TriedUplink>,
}

/// A check of what was entered.
#[derive(Clone, Debug)]
pub struct TrialCheck {
    /// The field that was checked.
    pub what: &'static str,
    /// Success, or the error with advice.
    pub result: CheckResult,
}

/// Success or failure of a check, with the reason.
#[derive(Clone, Debug)]
pub enum CheckResult {
    /// It can be used. The text says more, and may be empty.
    Passed(String),
    /// It may not do what is wanted, for this reason.
    Uncertain(String),
    /// It cannot be used, for this reason.
    Failed(String),
}

impl NetworkTrial {
    /// Returns true if nothing has failed.
    pub fn is_usable(&self) -> bool {
        self.checks.iter().all(|check| !matches!(check.result, CheckResult::Failed(_)))
    }
}

impl TrialCheck {
    /// A check that has failed.
    pub fn failed(what: &'static str, reason: impl Into<String>) -> Self {
        Self { what, result: CheckResult::Failed(reason.into()) }
    }
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
