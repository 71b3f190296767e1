//! Templates: devices that register on join, if their application allows it.

use api::{handler::Application, rest::account::NewAccessKey};
use client::account::AccountClient;
use serde_json::{Value, json};
use tonic::Code;
use types::{AccessKey, ApplicationRight};

use super::{
    APP_KEY, get, network,
    network_broker::{BROKER, DEV_ADDR, DEV_EUI, NetworkBroker, bytes},
    set,
};
use crate::harness::{Network, Owner, next};

/// Sets the access key with which devices register.
pub(crate) async fn set_key(owner: &Owner, key: Option<AccessKey>) {
    let register_on_join_access_key = key.map(String::from).unwrap_or_default();
    let application =
        Application { app_id: owner.app_id.to_string(), register_on_join_access_key, ..Application::default() };
    owner.handler.set_application(application).await.unwrap();
}

pub(crate) async fn make_key(network: &Network, owner: &Owner, name: &str, rights: &[ApplicationRight]) -> AccessKey {
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let new = NewAccessKey { name: name.to_owned(), rights: rights.to_vec() };
    account.add_access_key(&owner.token, &owner.app_id, &new).await.unwrap().key.unwrap()
}

pub(super) async fn devices(owner: &Owner) -> Vec<String> {
    let devices = owner.handler.list_devices(&owner.app_id, Default::default()).await.unwrap();
    devices.into_iter().map(|device| device.dev_id).collect()
}

// Conformance: Register on join: the template, its key, the new device
// Conformance: Error messages of v2, and the events `activations`
#[tokio::test(flavor = "multi_thread")]
async fn a_template_registers_devices_with_the_right_key() {
    let network = network().await;
    let (owner, stranger) = (network.owner("planter").await, network.owner("stranger").await);
    let broker = NetworkBroker::of(&network, "planter", "brokers", BROKER).await;
    set(&owner, "sensor", "", APP_KEY).await;
    let reading = make_key(&network, &owner, "reading", &[ApplicationRight::MessagesUpRead]).await;
    let foreign = make_key(&network, &stranger, "foreign", &[ApplicationRight::Devices]).await;
    for (key, code, text) in [
        (
            None,
            Code::InvalidArgument,
            "Application not valid: Does not have Access Key configured for device registration",
        ),
        (Some(reading), Code::PermissionDenied, "permission denied: no `devices` right"),
        (Some(foreign), Code::InvalidArgument, "Application not valid: access key not valid"),
    ] {
        set_key(&owner, key).await;
        let status = broker.join(&owner.app_id, "sensor", DEV_EUI, 1).await.unwrap_err();
        assert!(status.code() == code && status.message().starts_with(text), "{text}: {status}");
        assert_eq!(devices(&owner).await, ["sensor"]);
    }
    set_key(&owner, Some(make_key(&network, &owner, "planting", &[ApplicationRight::Devices]).await)).await;
    let mut listener = owner.listen(&network).await;
    broker.join(&owner.app_id, "sensor", DEV_EUI, 1).await.unwrap();
    let dev_id = format!("sensor-{}", DEV_EUI.to_lowercase());
    let (created, nothing) = next(&mut listener).await;
    let (joined, activation) = next(&mut listener).await;
    assert_eq!((created, nothing), (format!("{dev_id}/events/create"), Value::Null));
    assert_eq!((joined, &activation["dev_addr"]), (format!("{dev_id}/events/activations"), &json!(DEV_ADDR)));

    let found = owner.handler.get_device(&owner.app_id, &dev_id.parse().unwrap()).await.unwrap();
    assert!(found.description.starts_with("Registered on join on "), "{}", found.description);
    assert_eq!(get(&owner, &dev_id).await.dev_eui, bytes(DEV_EUI));
    assert_eq!(get(&owner, "sensor").await.dev_addr, [0; 4], "a template has no session");
    // After that it is a device of its own, under either id, and its nonce is used.
    for dev_id in ["sensor", &dev_id] {
        let status = broker.join(&owner.app_id, dev_id, DEV_EUI, 1).await.unwrap_err();
        assert_eq!(status.message(), "Activation DevNonce not valid: already used");
    }
    set_key(&owner, None).await;
    broker.join(&owner.app_id, "sensor", DEV_EUI, 2).await.expect("it is registered already");
    assert_eq!(devices(&owner).await, ["sensor", &dev_id]);
    network.stack.stop().await;
}
