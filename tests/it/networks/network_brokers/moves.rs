//! Devices that are moved to another application, at network servers and in uplinks that are on their way.

use api::lorawan::Device;
use client::handler::HandlerClient;
use serde_json::json;
use types::{AppId, DevId, DevicePath};

use super::{
    fake_broker::Told,
    linked,
    messages::{DEV_EUI, Kind, frame, uplink},
    registration::device_1,
};
use crate::{
    devices::moves::second_application,
    harness::{Owner, next},
};

async fn move_device(handler: &HandlerClient, owner: &Owner, to: &AppId) {
    let [from_id, to_id] = ["dev-1", "dev-9"].map(|text| text.parse::<DevId>().unwrap());
    let from = DevicePath { app_id: &owner.app_id, dev_id: &from_id };
    handler.move_device(from, DevicePath { app_id: to, dev_id: &to_id }).await.unwrap();
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test(flavor = "multi_thread")]
async fn the_network_server_learns_that_a_device_moved_and_nothing_is_lost_meanwhile() {
    let (network, owner, broker) = linked("mover").await;
    assert_eq!(broker.told().await, Told::Set(Box::new(device_1(owner.app_id.as_str()))));
    let live = second_application(&network, &owner).await;
    assert_eq!(broker.told().await, Told::Application(live.app_id.to_string()));
    live.set_functions(["function Decoder(bytes) { return {from: 'live', first: bytes[0]}; }", "", ""]).await.unwrap();
    let mut listener = live.listen(&network).await;
    // It has counted frames of which the handler does not know yet.
    let counting = |device: Device| Device { f_cnt_up: 7, f_cnt_down: 5, ..device };
    broker.keep_devices(&[counting(device_1(owner.app_id.as_str()))]).await;
    move_device(&live.handler, &owner, &live.app_id).await;
    assert_eq!(broker.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()));
    let moved = Device { dev_id: "dev-9".to_owned(), ..device_1(live.app_id.as_str()) };
    assert_eq!(broker.told().await, Told::Set(Box::new(counting(moved))));

    // The network server named the device before it learned of the move.
    broker.send(uplink(&owner.app_id, "dev-1", frame(Kind::Confirmed, 3), 3)).await;
    let (topic, message) = next(&mut listener).await;
    assert_eq!((topic.as_str(), &message["payload_fields"]), ("dev-9/up", &json!({"from": "live", "first": 117})));
    broker.send(uplink(&live.app_id, "dev-9", frame(Kind::Confirmed, 4), 4)).await;
    assert_eq!(next(&mut listener).await.1["counter"], 4);
    // Of a stranger with its EUIs, there is nothing.
    let mut forged = frame(Kind::Confirmed, 5);
    forged[9] ^= 1;
    broker.send(uplink(&owner.app_id, "dev-1", forged, 5)).await;
    broker.send(uplink(&owner.app_id, "dev-1", frame(Kind::Confirmed, 6), 6)).await;
    assert_eq!(next(&mut listener).await.1["counter"], 6);
    network.stack.stop().await;
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_brought_to_a_network_server_that_refused_it_when_it_moved() {
    let (network, owner, broker) = linked("stubborn").await;
    broker.told().await;
    let live = second_application(&network, &owner).await;
    broker.told().await;
    broker.refuse_devices("not now").await;
    move_device(&live.handler, &owner, &live.app_id).await;
    assert!(broker.was_told_nothing().await);
    broker.refuse_devices("").await;
    // The handler tries again when it has subscribed.
    broker.restart().await;
    broker.wait_for_handler().await;
    assert_eq!(broker.told().await, Told::Deleted(hex::decode(DEV_EUI).unwrap()));
    let Told::Set(brought) = broker.told().await else { panic!("it is brought") };
    assert_eq!((brought.app_id.as_str(), brought.dev_id.as_str()), (live.app_id.as_str(), "dev-9"));
    network.stack.stop().await;
}
