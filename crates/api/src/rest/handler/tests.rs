//! REST bodies as v2 clients write and read them.

use serde_json::{from_value, json, to_string, to_value};

use super::*;

// Conformance: Every field, in gRPC and JSON
#[test]
fn members_come_in_the_order_of_the_message() {
    let body = concat!(
        r#"{"app_id":"my-app","dev_id":"dev-1","lorawan_device":{"app_eui":"70B3D57ED0000001","dev_eui":"","#,
        r#""app_id":"my-app","dev_id":"dev-1","dev_addr":"26012345","nwk_s_key":"","#,
        r#""app_s_key":"2B7E151628AED2A6ABF7158809CF4F3C","app_key":"","f_cnt_up":4294967295,"f_cnt_down":2,"#,
        r#""disable_f_cnt_check":true,"uses32_bit_f_cnt":true,"activation_constraints":"local","#,
        r#""last_seen":"1484664429740000000"},"latitude":52.375,"longitude":4,"altitude":-3,"#,
        r#""attributes":{"a":"1","b":"2"},"description":"by the door"}"#
    );
    let device: Device = serde_json::from_str(body).unwrap();
    assert_eq!(to_string(&device).unwrap(), body);
}

// Conformance: Hexadecimal bytes, 64-bit numbers as strings, defaults omitted
#[test]
fn defaults_are_left_out_except_euis() {
    let device = Device { lorawan_device: Some(LorawanDevice::default()), ..Device::default() };
    assert_eq!(to_value(device).unwrap(), json!({"lorawan_device": {"app_eui": "", "dev_eui": ""}}));
    assert_eq!(to_value(HandlerApplication::default()).unwrap(), json!({}));
    assert_eq!(to_value(DeviceList::default()).unwrap(), json!({}));
}

// Conformance: Hexadecimal bytes, 64-bit numbers as strings, defaults omitted
#[test]
fn camel_case_numbers_as_text_nulls_and_more_members_read() {
    let device: Device = from_value(json!({
        "appId": "my-app", "devId": "dev-1", "altitude": "7", "description": null, "unknown": [1],
        "lorawanDevice": {
            "devAddr": "", "nwkSKey": null, "fCntUp": "5", "uses32BitFCnt": true, "lastSeen": 9, "appEui": null,
        },
    }))
    .unwrap();
    let lorawan = device.lorawan_device.as_ref().unwrap();
    assert_eq!((device.app_id.as_str(), device.altitude, lorawan.f_cnt_up), ("my-app", 7, 5));
    assert_eq!((lorawan.dev_addr, &lorawan.nwk_s_key, lorawan.last_seen), (Some(DevAddr::default()), &None, 9));
}

#[test]
fn a_device_survives_the_way_through_its_message() {
    let device: Device = from_value(json!({
        "app_id": "my-app", "dev_id": "dev-1", "attributes": {"a": "b"}, "latitude": 1.5,
        "lorawan_device": {"dev_eui": "0000000000000001", "dev_addr": "", "app_key": "00".repeat(15) + "01"},
    }))
    .unwrap();
    let message = handler::Device::from(device.clone());
    assert_eq!(Device::try_from(message).unwrap(), device);
}

#[test]
fn refuses_keys_of_another_length() {
    for key in ["00", "0000000000000000000000000000000000", "zz000000000000000000000000000000"] {
        assert!(from_value::<LorawanDevice>(json!({ "app_key": key })).is_err(), "{key}");
    }
    let message = lorawan::Device { dev_eui: vec![1; 7], ..Default::default() };
    assert!(LorawanDevice::try_from(message).is_err());
}

#[test]
fn refuses_numbers_out_of_range() {
    assert!(from_value::<LorawanDevice>(json!({"f_cnt_up": 4_294_967_296_u64})).is_err());
    assert!(from_value::<LorawanDevice>(json!({"f_cnt_up": -1})).is_err());
    assert!(from_value::<Device>(json!({"altitude": "high"})).is_err());
}

#[test]
fn a_payload_is_base64() {
    let uplink: SimulatedUplink = from_value(json!({"payload": "AAEC", "port": 1})).unwrap();
    assert_eq!(uplink.payload, [0, 1, 2]);
    assert_eq!(to_value(&uplink).unwrap(), json!({"payload": "AAEC", "port": 1}));
}
