//! Address of the broker, and this process's identity there.

use std::{path::PathBuf, time::Duration};

use link::{Remote, mqtt::Endpoint};
use types::Random;

use super::{
    leases::ReceiveLeases,
    publisher::BrokerPublisher,
    subscription::{BrokerReceiver, BrokerSubscription},
};
use crate::{Error, environment::state_dir::StateDir};

/// Address of the broker, and this process's identity there.
pub struct BrokerConnection {
    publishing: Endpoint,
    subscribing: Endpoint,
    /// The broker keeps what waits for this process under the client id that is in it.
    state_dir: StateDir,
}

impl BrokerConnection {
    /// Checks the settings; `table` is where they are, for messages. `state_dir` is for this process alone.
    pub fn new(settings: &Remote, table: &str, state_dir: PathBuf, random: &dyn Random) -> Result<Self, Error> {
        crate::metrics::describe();
        let state_dir = StateDir::open(state_dir)?;
        let client_id = state_dir.client_id(random)?;
        let endpoint = |role: &str| Endpoint::new(settings, table, format!("{client_id}-{role}"));
        Ok(Self { publishing: endpoint("out")?, subscribing: endpoint("in")?, state_dir })
    }

    /// The broker as clients name it: `host:1883`, or `mqtts://host:8883`.
    pub fn address(&self) -> String {
        let url = self.publishing.url.to_string();
        url.strip_prefix("mqtt://").map(str::to_owned).unwrap_or(url)
    }

    /// Connects in the background. What the broker does not confirm for so long counts as not published.
    pub fn publish(&self, confirm_wait_max: Duration) -> BrokerPublisher {
        BrokerPublisher::start(self.publishing.clone(), confirm_wait_max)
    }

    /// Takes what the broker has kept for this process since it subscribed at some time, and nothing new.
    pub fn leave(self, filter: &str, receiver: impl BrokerReceiver + 'static) -> BrokerSubscription {
        BrokerSubscription::leave(self.subscribing, filter, receiver, self.state_dir)
    }

    /// Connects in the background, and shares what matches with the other processes that subscribe; where the broker
    /// cannot do that, they take `leases`.
    pub fn subscribe(
        self,
        filter: &str,
        receiver: impl BrokerReceiver + 'static,
        leases: impl ReceiveLeases + 'static,
    ) -> BrokerSubscription {
        BrokerSubscription::start(self.subscribing, filter, receiver, leases, self.state_dir)
    }
}
