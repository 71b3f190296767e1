//! Uplinks of network brokers: decrypted, published, and refused with a reason.

use serde_json::json;

use super::{
    linked,
    messages::{DEV_EUI, Kind, WIDE, frame, uplink},
};
use crate::harness::{next, remove_time};

// Conformance: Subscribe: uplinks are verified, decrypted and published
#[tokio::test(flavor = "multi_thread")]
async fn an_uplink_is_decrypted_and_published_in_the_format_of_v2() {
    let (network, owner, broker) = linked("receiver").await;
    owner
        .set_functions([
            "function Decoder(bytes, port) { return {text: String.fromCharCode.apply(null, bytes)}; }",
            "",
            "",
        ])
        .await
        .unwrap();
    let mut listener = owner.listen(&network).await;
    broker.send(uplink(&owner.app_id, "dev-1", frame(Kind::Confirmed, 3), 3)).await;
    let gateway = |antenna: u32, rssi: f32| {
        let mut gateway = json!({
            "gtw_id": "gateway-1", "gtw_trusted": true, "timestamp": 12, "time": "", "antenna": antenna, "channel": 3,
            "rssi": rssi, "snr": 7.5, "rf_chain": 0, "latitude": 52.5, "longitude": 13.25, "location_source": "config",
        });
        if antenna == 0 {
            gateway.as_object_mut().unwrap().remove("antenna");
        }
        gateway
    };
    let metadata = json!({
        "time": "2017-01-17T14:47:09.74Z", "frequency": 868.1, "modulation": "LORA", "data_rate": "SF7BW125",
        "airtime": 51_456_000, "coding_rate": "4/5", "gateways": [gateway(0, -50.0), gateway(1, -60.0)],
    });
    let expected = json!({
        "app_id": owner.app_id, "dev_id": "dev-1", "hardware_serial": DEV_EUI, "port": 1, "counter": 3,
        "confirmed": true, "payload_raw": "dXAz", "payload_fields": {"text": "up3"}, "metadata": metadata,
    });
    assert_eq!(next(&mut listener).await, ("dev-1/up".to_owned(), expected));

    // The device did not hear the answer, and sends the same again.
    broker.send(uplink(&owner.app_id, "dev-1", frame(Kind::Confirmed, 3), 3)).await;
    assert_eq!(next(&mut listener).await.1["is_retry"], true);
    // The network knows the upper half of the counter.
    broker.send(uplink(&owner.app_id, "dev-1", hex::decode(WIDE).unwrap(), 65_539)).await;
    let (_, message) = next(&mut listener).await;
    assert_eq!((&message["counter"], &message["payload_raw"]), (&json!(65_539), &json!("d2lkZQ==")));
    assert_eq!(message.get("is_retry"), None);

    // The counters are noted before the next uplink of the device.
    broker.send(uplink(&owner.app_id, "dev-1", hex::decode(WIDE).unwrap(), 65_539)).await;
    assert_eq!(next(&mut listener).await.1["is_retry"], true);
    let device = owner.handler.get_device(&owner.app_id, &"dev-1".parse().unwrap()).await.unwrap();
    let Some(api::handler::device::Device::LorawanDevice(lorawan)) = device.device else { panic!("a device") };
    assert_eq!((lorawan.f_cnt_up, lorawan.last_seen), (65_539, 1_484_664_429_740_000_000));
    network.stack.stop().await;
}

// Conformance: `up/errors` with the reason
#[tokio::test(flavor = "multi_thread")]
async fn an_uplink_that_cannot_be_used_becomes_an_event_with_the_reason() {
    let (network, owner, broker) = linked("checker").await;
    owner.add_device("keyless").await;
    let mut listener = owner.listen(&network).await;
    let mut forged = frame(Kind::Unconfirmed, 3);
    forged[9] ^= 1;
    for (dev_id, payload, f_cnt, reason) in [
        ("dev-1", forged, 3, "its MIC is not made with the NwkSKey of the device"),
        ("dev-1", frame(Kind::Unconfirmed, 3), 4, "its metadata has the frame counter of another one"),
        ("dev-1", frame(Kind::Unconfirmed, 3), 65_539, "its MIC is not made with the NwkSKey of the device"),
        ("dev-1", vec![0x40], 0, "it is not a data frame of LoRaWAN 1.0"),
        ("keyless", frame(Kind::Unconfirmed, 3), 3, "session keys of device keyless not found"),
        ("nobody", frame(Kind::Unconfirmed, 3), 3, "not found"),
    ] {
        broker.send(uplink(&owner.app_id, dev_id, payload, f_cnt)).await;
        let (topic, mut event) = next(&mut listener).await;
        assert_eq!(topic, format!("{dev_id}/events/up/errors"), "{event}");
        assert!(event["error"].as_str().unwrap().contains(reason), "{event}");
        assert!(remove_time(&mut event));
    }
    // Ids that cannot exist are dropped, and what follows is not.
    broker.send(uplink(&owner.app_id, "No Device", frame(Kind::Unconfirmed, 3), 3)).await;
    broker.send(uplink(&owner.app_id, "dev-1", frame(Kind::Unconfirmed, 4), 0)).await;
    assert_eq!(next(&mut listener).await.1["counter"], 4);
    network.stack.stop().await;
}

// Conformance: The handler connects again by itself, with a token that it signs
#[tokio::test(flavor = "multi_thread")]
async fn the_handler_subscribes_again_after_a_restart_of_the_network_broker() {
    let (network, owner, broker) = linked("patient").await;
    let mut listener = owner.listen(&network).await;
    for f_cnt in 3..6 {
        broker.send(uplink(&owner.app_id, "dev-1", frame(Kind::Unconfirmed, f_cnt), f_cnt)).await;
        assert_eq!(next(&mut listener).await.1["counter"], f_cnt);
        broker.restart().await;
        broker.wait_for_handler().await;
    }
    network.stack.stop().await;
}

// Conformance: Subscribe: uplinks are verified, decrypted and published
#[tokio::test(flavor = "multi_thread")]
async fn the_uplinks_of_a_device_stay_in_order() {
    let (network, owner, broker) = linked("orderly").await;
    let mut listener = owner.listen(&network).await;
    for f_cnt in 3..14 {
        broker.send(uplink(&owner.app_id, "dev-1", frame(Kind::Unconfirmed, f_cnt), f_cnt)).await;
    }
    for f_cnt in 3..14 {
        assert_eq!(next(&mut listener).await.1["counter"], f_cnt);
    }
    network.stack.stop().await;
}
