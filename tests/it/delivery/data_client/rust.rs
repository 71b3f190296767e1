//! The data client for Rust against real services.

use client::{
    account::AccountClient,
    data::{ConnectionEvent, DataClient, DeviceEventName, Message, MessageStream, Payload, Received, Schedule, Topics},
};
use testing::Proxy;
use tokio::{sync::mpsc, time::timeout};
use types::{AccessKey, Credential, DevId, Kind, Kinded};

use super::application;
use crate::{
    delivery::third_party_clients::python_sdk::full_key,
    harness::{MESSAGE_TIMEOUT, Network, Owner},
};

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(MESSAGE_TIMEOUT, future).await.expect("it happens")
}

async fn next(stream: &mut MessageStream) -> Received {
    soon(stream.next()).await.expect("the client is open").unwrap()
}

async fn connect(owner: &Owner, address: &str, key: &AccessKey) -> DataClient {
    DataClient::connect(address, &owner.app_id, &Credential::Key(key.clone())).await.unwrap()
}

fn dev_id() -> DevId {
    "dev-1".parse().unwrap()
}

// Conformance: The MQTT client receives messages and sends downlinks
// Conformance: The data client for Rust
#[tokio::test(flavor = "multi_thread")]
async fn streams_and_listeners_hear_their_devices() {
    let network = Network::start().await;
    let owner = application(&network).await;
    let client = DataClient::connect(&network.mqtt(), &owner.app_id, &owner.token).await.unwrap();
    let mut all = client.stream(Topics::uplinks()).await.unwrap();
    let (sender, mut heard) = mpsc::channel(16);
    let only = Topics::new("message", "dev-2", &[]).unwrap();
    let listener = client.on(only, move |dev_id, _| sender.try_send(dev_id.clone()).unwrap()).await.unwrap();
    for dev_id in ["dev-1", "dev-2"] {
        owner.simulate(dev_id, &[1, 2], 3).await.unwrap();
        let received = next(&mut all).await;
        let Message::Uplink(uplink) = &*received.message else { panic!("{received:?}") };
        assert_eq!((received.dev_id.as_str(), uplink.port), (dev_id, 3));
        assert_eq!(uplink.payload_fields.as_ref().unwrap().get(), r#"{"bytes":[1,2]}"#);
    }
    assert_eq!(soon(heard.recv()).await.unwrap().as_str(), "dev-2");
    client.off(listener);
    assert!(soon(heard.recv()).await.is_none());
    client.close(false).await;
    assert!(soon(all.next()).await.is_none());
    network.stack.stop().await;
}

// Conformance: The MQTT client receives messages and sends downlinks
// Conformance: The data client for Rust
#[tokio::test(flavor = "multi_thread")]
async fn sends_downlinks_and_hears_of_them() {
    let network = Network::start().await;
    let owner = application(&network).await;
    let client = connect(&owner, &network.mqtt(), &full_key(&network, &owner).await).await;
    let scheduled = Topics::new("event", "+", &["downlink/scheduled", "down/errors"]).unwrap();
    let mut events = client.stream(scheduled).await.unwrap();
    let fields = serde_json::value::RawValue::from_string(r#"{"led":true}"#.to_owned()).unwrap();
    for payload in [Payload::from([1, 255]), Payload::from(fields)] {
        client.send(&dev_id(), payload, 2, true, Schedule::Last).await.unwrap();
        let received = next(&mut events).await;
        let Message::Downlink(DeviceEventName::DownScheduled, event) = &*received.message else {
            panic!("{received:?}")
        };
        let downlink = event.message.as_ref().unwrap();
        assert_eq!((downlink.port, downlink.confirmed), (2, true));
        assert!(downlink.payload_raw.is_some() != downlink.payload_fields.is_some());
    }
    network.stack.stop().await;
}

// Conformance: The data client for Rust
#[tokio::test(flavor = "multi_thread")]
async fn receives_again_after_the_connection_was_lost() {
    let network = Network::start().await;
    let owner = application(&network).await;
    let address = network.stack.mqtt_address().unwrap();
    let proxy = Proxy::start(Some(address)).await;
    let client = connect(&owner, &proxy.address.to_string(), &full_key(&network, &owner).await).await;
    let mut uplinks = client.stream(Topics::uplinks()).await.unwrap();
    let (sender, mut events) = mpsc::channel(16);
    let _listener = client.on_connection(move |event| sender.try_send(event.clone()).unwrap());
    proxy.redirect(Some(address)).await;
    while soon(events.recv()).await != Some(ConnectionEvent::Connect) {}
    // A downlink that the broker acknowledges was sent after the subscription, which therefore exists.
    client.send(&dev_id(), [1], 1, false, Schedule::Replace).await.unwrap();
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    next(&mut uplinks).await;
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_when_its_key_is_deleted() {
    let network = Network::start().await;
    let owner = application(&network).await;
    let client = connect(&owner, &network.mqtt(), &full_key(&network, &owner).await).await;
    let mut uplinks = client.stream(Topics::uplinks()).await.unwrap();
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    account.delete_access_key(&owner.token, &owner.app_id, "script").await.unwrap();
    let error = soon(uplinks.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), Kind::Unauthenticated, "{error}");
    assert!(soon(uplinks.next()).await.is_none());
    network.stack.stop().await;
}
