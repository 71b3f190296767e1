//! Events in the form that ChirpStack was recorded to send.

use serde_json::{Value, json};

use super::*;

const DEV_EUI: &str = "a300000000000001";

fn device_info() -> Value {
    json!({"deviceName": "Kitchen", "devEui": DEV_EUI, "tags": {"room": "kitchen"}, "deviceClassEnabled": "CLASS_A"})
}

fn read(name: &str, event: &Value) -> Result<Report, Unreadable> {
    Report::read(name, DEV_EUI, event.to_string().as_bytes())
}

fn downlink(name: &str, event: &Value) -> Option<(String, DownlinkOutcome)> {
    match read(name, event).unwrap().event {
        Some(NetworkEvent::Downlink(report)) => Some((report.id, report.outcome)),
        None => None,
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_read_of_a_gateway_is_left_out() {
    let event = json!({
        "deviceInfo": device_info(), "fCnt": 7, "data": "AQID",
        "rxInfo": [{"gatewayId": "0102", "gwTime": "yesterday", "rssi": "loud", "snr": 7.5, "channel": -1}, 7],
        "txInfo": {"frequency": "high", "modulation": {"lora": {"bandwidth": 125_000, "spreadingFactor": 7}}},
    });
    let Some(NetworkEvent::Uplink(uplink)) = read("up", &event).unwrap().event else { panic!() };
    let [gateway] = &uplink.metadata.gateways[..] else { panic!("{:?}", uplink.metadata) };
    assert_eq!((&*gateway.gtw_id, &*gateway.time, gateway.rssi, gateway.snr), ("eui-0102", "", 0.0, 7.5));
    assert_eq!((&*uplink.metadata.data_rate, uplink.metadata.frequency), ("SF7BW125", 0.0));
    for missing in [json!(null), json!({})] {
        let event = json!({"deviceInfo": device_info(), "rxInfo": missing, "txInfo": missing});
        assert!(matches!(read("up", &event).unwrap().event, Some(NetworkEvent::Uplink(_))), "{missing}");
    }
}

#[test]
fn an_uplink_has_the_radio_metadata_of_v2() {
    let event = json!({
        "deduplicationId": "d1", "time": "2026-11-22T16:45:55.231022372+00:00", "deviceInfo": device_info(),
        "fCnt": 7, "fPort": 2, "confirmed": true, "data": "AQID", "newMember": {"a": 1},
        "rxInfo": [{
            "gatewayId": "0102030405060708", "nsTime": "2026-11-22T16:45:55.026368273+00:00", "rssi": -60, "snr": 7.5,
            "channel": 1, "rfChain": 1, "location": {"latitude": 52.5, "longitude": 13.4, "altitude": 34.6},
        }, {"gatewayId": "ff", "rssi": -119}],
        "txInfo": {"frequency": 868_300_000, "modulation": {
            "lora": {"bandwidth": 125_000, "spreadingFactor": 7, "codeRate": "CR_4_5"},
        }},
    });
    let report = read("up", &event).unwrap();
    assert_eq!(report.deduplication_id, "d1");
    let Some(NetworkEvent::Uplink(uplink)) = report.event else { panic!() };
    assert_eq!((uplink.port, uplink.f_cnt, uplink.confirmed), (2, 7, true));
    assert_eq!((uplink.payload, uplink.device.name), (vec![1, 2, 3], "Kitchen".to_owned()));
    let metadata = serde_json::to_value(&uplink.metadata).unwrap();
    let expected = json!({
        "time": "", "frequency": 868.3_f32, "modulation": "LORA", "data_rate": "SF7BW125", "coding_rate": "4/5",
        "gateways": [{
            "gtw_id": "eui-0102030405060708", "time": "2026-11-22T16:45:55.026368273Z", "channel": 1, "rssi": -60.0,
            "snr": 7.5, "rf_chain": 1, "latitude": 52.5, "longitude": 13.4_f32, "altitude": 34,
        }, {"gtw_id": "eui-ff", "time": "", "channel": 0, "rssi": -119.0, "snr": 0.0, "rf_chain": 0}],
    });
    assert_eq!(metadata, expected);
}

#[test]
fn fsk_has_a_bit_rate() {
    let event = json!({"deviceInfo": device_info(), "txInfo": {
        "frequency": 868_800_000, "modulation": {"fsk": {"frequencyDeviation": 25_000, "datarate": 50_000}},
    }});
    let Some(NetworkEvent::Uplink(uplink)) = read("up", &event).unwrap().event else { panic!() };
    assert_eq!((uplink.metadata.modulation.as_str(), uplink.metadata.bit_rate), ("FSK", 50_000));
    assert_eq!(uplink.metadata.data_rate, "");
}

#[test]
fn an_event_must_be_of_the_topics_device_and_readable() {
    let other = json!({"deviceInfo": {"devEui": "a300000000000002"}});
    let encrypted = json!({"deviceInfo": device_info(), "joinServerContext": {"sessionKeyId": "x"}});
    for (event, expected) in [
        (other, "deviceInfo.devEui"),
        (json!({}), "deviceInfo.devEui"),
        (json!({"deviceInfo": device_info(), "data": "&"}), "`data`"),
        (json!({"deviceInfo": device_info(), "fPort": 300}), "not an event of ChirpStack 4"),
        (encrypted, "encrypted"),
    ] {
        let error = read("up", &event).err().unwrap().to_string();
        assert!(error.contains(expected), "{event}: {error}");
    }
    let error = Report::read("up", DEV_EUI, b"\x0a\x24bf75").err().unwrap().to_string();
    assert!(error.contains("json=true"), "{error}");
    let nameless = json!({"deviceInfo": {"devEui": DEV_EUI, "deviceName": null, "tags": null}, "time": null});
    assert!(read("up", &nameless).is_ok(), "what is not needed may be unreadable");
    assert!(Report::read("status", DEV_EUI, b"\x0a\x24bf75").unwrap().event.is_none());
}

#[test]
fn downlinks_are_sent_acknowledged_or_fail() {
    let mut event = json!({
        "deviceInfo": device_info(), "queueItemId": "q1", "fCntDown": 3, "gatewayId": "0102", "txInfo": {
            "frequency": 869_525_000, "power": 14,
            "modulation": {"lora": {"bandwidth": 125_000, "spreadingFactor": 9, "codeRate": "CR_4_5"}},
        },
    });
    let config = DownlinkConfig {
        modulation: "LORA".to_owned(),
        data_rate: "SF9BW125".to_owned(),
        counter: 3,
        frequency: 869_525_000,
        power: 14,
        ..DownlinkConfig::default()
    };
    let sent = DownlinkOutcome::Sent { gateway_id: "eui-0102".to_owned(), config };
    assert_eq!(downlink("txack", &event), Some(("q1".to_owned(), sent)));
    // A join accept, or commands of the network.
    event["queueItemId"] = json!("");
    assert_eq!(downlink("txack", &event), None);

    let mut event = json!({"deviceInfo": device_info(), "queueItemId": "q1", "acknowledged": true});
    assert_eq!(downlink("ack", &event), Some(("q1".to_owned(), DownlinkOutcome::Acknowledged)));
    event["acknowledged"] = json!(false);
    assert!(matches!(downlink("ack", &event), Some((_, DownlinkOutcome::NotAcknowledged))));

    let mut event = json!({
        "deviceInfo": device_info(), "level": "ERROR", "code": "EXPIRED", "description": "it has expired",
        "context": {"queue_item_id": "q1"},
    });
    let failed = DownlinkOutcome::Failed("it has expired".to_owned());
    assert_eq!(downlink("log", &event), Some(("q1".to_owned(), failed)));
    event["code"] = json!("UPLINK_CODEC");
    assert_eq!(downlink("log", &event), None);
}
