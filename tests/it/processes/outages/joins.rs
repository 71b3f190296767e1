//! Joins while the account service is unreachable: registered devices join, and no others are registered.

use tonic::Code;
use types::ApplicationRight;

use super::{account::Services, soon};
use crate::devices::joins::{
    self, APP_KEY,
    network_broker::{BROKER, DEV_EUI, NetworkBroker},
    templates,
};

const TEMPLATE_DEV_EUI: &str = "0004A30B001C0531";

#[tokio::test(flavor = "multi_thread")]
async fn registered_devices_join_while_the_account_service_is_away() {
    // They do so however long it is unreachable.
    let mut services = Services::start(0).await;
    let owner = &services.owner;
    let broker = NetworkBroker::of(&services.network, "steady", "brokers", BROKER).await;
    let key = templates::make_key(&services.network, owner, "planting", &[ApplicationRight::Devices]).await;
    templates::set_key(owner, Some(key)).await;
    joins::set(owner, "joins", DEV_EUI, APP_KEY).await;
    joins::set(owner, "template", "", APP_KEY).await;
    broker.join(&owner.app_id, "joins", DEV_EUI, 1).await.unwrap();

    services.account.freeze();
    soon(503, async || services.read(&services.owner.token).await).await;
    broker.join(&services.owner.app_id, "joins", DEV_EUI, 2).await.unwrap();
    let unregistered = broker.join(&services.owner.app_id, "template", TEMPLATE_DEV_EUI, 1).await.unwrap_err();
    assert_eq!(unregistered.code(), Code::Unavailable, "registering a device is a change: {unregistered}");
    services.account.thaw();
    soon(200, async || services.read(&services.owner.token).await).await;

    services.account.kill();
    soon(503, async || services.read(&services.owner.token).await).await;
    broker.join(&services.owner.app_id, "joins", DEV_EUI, 3).await.unwrap();
    services.account.start_again();
    soon(200, async || services.read(&services.owner.token).await).await;
    // What was used before is used still, and the template registers again.
    let used = broker.join(&services.owner.app_id, "joins", DEV_EUI, 2).await.unwrap_err();
    assert_eq!(used.message(), "Activation DevNonce not valid: already used");
    services.stop().await;
}
