//! Network brokers of The Things Network v2: their uplinks, and the downlinks that answer these.

mod downlinks;
pub(crate) mod fake_broker;
mod joins;
pub(crate) mod messages;
mod moves;
mod reconciliation;
mod registration;
mod uplinks;

use airlock::settings::Settings;

use self::fake_broker::FakeBroker;
use crate::harness::{Network, Owner};

const BROKER: &str = "broker-1";

/// A handler that is subscribed to a network broker, and an application with a device.
pub(crate) async fn linked(name: &str) -> (Network, Owner, FakeBroker) {
    linked_with(name, |_| ()).await
}

/// The same with other settings.
pub(crate) async fn linked_with(name: &str, change: impl FnOnce(&mut Settings)) -> (Network, Owner, FakeBroker) {
    let network = Network::with(|settings| {
        settings.handler.network_brokers = vec![BROKER.parse().unwrap()];
        change(settings);
    })
    .await;
    let owner = network.owner(name).await;
    let broker = FakeBroker::start(&network, name, BROKER).await;
    messages::add_device(&owner, "dev-1").await;
    broker.wait_for_handler().await;
    (network, owner, broker)
}
