//! Devices are found by text and by when they were last seen, also if only history has their uplinks; and many are
//! changed at once.

use std::{collections::BTreeSet, time::Duration};

use api::{
    device::{ChangeDevicesRequest, FindDevicesRequest, FoundDevices, NewestUplinksRequest},
    handler::device::Device as Protocol,
};
use serde_json::{Value, json};
use types::{Clock, Timestamp};

use crate::harness::{Network, Owner, device};

async fn find(owner: &Owner, search: FindDevicesRequest) -> FoundDevices {
    let search = FindDevicesRequest { app_id: owner.app_id.to_string(), ..search };
    owner.handler.find_devices(search).await.unwrap()
}

fn ids(found: &FoundDevices) -> Vec<&str> {
    found.devices.iter().map(|device| device.dev_id.as_str()).collect()
}

/// When the only device that was found was last seen; zero for never.
fn last_seen(found: &FoundDevices) -> Timestamp {
    let [device] = &found.devices[..] else { panic!("{:?}", ids(found)) };
    let Some(Protocol::LorawanDevice(lorawan)) = &device.device else { panic!("it has none") };
    Timestamp::from_nanos(lorawan.last_seen)
}

// Conformance: Devices are found by text and by when they were last seen; their newest uplinks
#[tokio::test]
async fn devices_are_found_by_each_text_that_they_have_without_keys() {
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    for number in 1..=3 {
        let mut device = device(&owner.app_id, &format!("dev-{number}"));
        device.description = format!("By DOOR {number}");
        device.attributes = [("room".to_owned(), format!("Über-{number}"))].into();
        let lorawan = device.lorawan_device.as_mut().unwrap();
        lorawan.app_key = Some("000102030405060708090A0B0C0D0E0F".parse().unwrap());
        lorawan.dev_eui = format!("AABBCCDDEEFF000{number}").parse().unwrap();
        owner.handler.set_device(device.into()).await.unwrap();
    }
    for search in ["DEV-2", "door 2", "ff0002", "üBER-2", " dev-2 "] {
        let found = find(&owner, FindDevicesRequest { search: search.to_owned(), ..Default::default() }).await;
        assert_eq!((ids(&found), found.total), (vec!["dev-2"], 1), "{search}");
        let Some(Protocol::LorawanDevice(lorawan)) = &found.devices[0].device else { panic!("it has none") };
        assert!(lorawan.app_key.is_empty() && lorawan.dev_eui.len() == 8, "keys are not for lists: {search}");
    }
    let rooms = find(&owner, FindDevicesRequest { search: "ROOM".to_owned(), limit: 2, ..Default::default() }).await;
    assert_eq!((ids(&rooms), rooms.total, rooms.position), (vec!["dev-1", "dev-2"], 3, 0));
    let rest = FindDevicesRequest { search: "room".to_owned(), after: rooms.next, ..Default::default() };
    let rest = find(&owner, rest).await;
    assert_eq!((ids(&rest), rest.total, rest.position, rest.next.as_str()), (vec!["dev-3"], 3, 2, ""));
}

// Conformance: Devices are found by text and by when they were last seen; their newest uplinks
#[tokio::test]
async fn silent_devices_are_found_on_pages_that_miss_none_when_others_are_heard() {
    let (network, clock) = Network::with_clock(|_| ()).await;
    let owner = network.owner("owner").await;
    for number in 1..=6 {
        owner.add_device(&format!("dev-{number}")).await;
    }
    for dev_id in ["dev-2", "dev-4"] {
        owner.simulate(dev_id, &[1], 1).await.unwrap();
        clock.advance(Duration::from_secs(60));
    }
    let since = clock.now();
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    let silent = |after: &str| FindDevicesRequest {
        not_seen_since: Some(since.as_nanos()),
        limit: 2,
        after: after.to_owned(),
        ..Default::default()
    };
    let first = find(&owner, silent("")).await;
    assert_eq!((ids(&first), first.total, first.is_partial), (vec!["dev-2", "dev-3"], 5, false));
    owner.simulate("dev-2", &[1], 1).await.unwrap();
    let second = find(&owner, silent(&first.next)).await;
    assert_eq!((ids(&second), second.total, second.position), (vec!["dev-4", "dev-5"], 4, 1));
    let last = find(&owner, silent(&second.next)).await;
    assert_eq!((ids(&last), last.next.as_str()), (vec!["dev-6"], ""));

    let by_time = |search: &str| FindDevicesRequest {
        order: "last_seen".to_owned(),
        search: search.to_owned(),
        ..Default::default()
    };
    let all = find(&owner, by_time("")).await;
    assert_eq!(ids(&all)[..4], ["dev-3", "dev-5", "dev-6", "dev-4"]);
    assert_eq!(BTreeSet::from_iter(&ids(&all)[4..]), BTreeSet::from_iter(&["dev-1", "dev-2"]));
    assert_eq!(last_seen(&find(&owner, by_time("dev-4")).await), since.minus(Duration::from_secs(60)));
    assert_eq!(last_seen(&find(&owner, by_time("dev-6")).await), Timestamp::from_nanos(0));
}

// Conformance: Devices are found by text and by when they were last seen; their newest uplinks
#[tokio::test]
async fn the_newest_uplinks_of_some_devices_are_listed_and_of_no_other() {
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    for number in 1..=3 {
        let dev_id = format!("dev-{number}");
        owner.add_device(&dev_id).await;
        for byte in 0..3 {
            owner.simulate(&dev_id, &[number, byte], 1).await.unwrap();
        }
    }
    let app_id = owner.app_id.to_string();
    let dev_ids = ["dev-3", "nobody", "dev-1"].map(str::to_owned).into();
    let newest = NewestUplinksRequest { app_id, dev_ids, limit: 2 };
    let newest = owner.handler.list_newest_uplinks(newest).await.unwrap();
    let payloads: Vec<_> = newest.uplinks.iter().map(|uplink| &uplink.payload[..]).collect();
    assert_eq!(payloads, [[3, 2], [3, 1], [1, 2], [1, 1]]);
    assert!(newest.unknown.is_empty() && newest.uplinks[0].metadata.is_empty(), "{newest:?}");

    let http = network.handler_http();
    let path = "/newest-uplinks?dev_ids=dev-2&limit=1";
    let (status, newest) = owner.ask(&http, "GET", path, Value::Null).await;
    assert_eq!((status, &newest["uplinks"][0]["payload_raw"]), (200, &json!("AgI=")), "{newest}");
    let (status, found) = owner.ask(&http, "GET", "/find-devices?search=DEV-2", Value::Null).await;
    assert_eq!((status, &found["devices"][0]["dev_id"], &found["total"]), (200, &json!("dev-2"), &json!(1)), "{found}");
    assert!(found["devices"][0]["lorawan_device"].get("app_key").is_none(), "{found}");
}

// Conformance: An attribute of many devices is changed in one call, and nothing else about them
#[tokio::test]
async fn an_attribute_of_many_devices_is_set_and_removed_and_each_refusal_has_a_reason() {
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    for dev_id in ["dev-1", "dev-2", "dev-3"] {
        let mut device = device(&owner.app_id, dev_id);
        let lorawan = device.lorawan_device.as_mut().unwrap();
        lorawan.app_key = Some("000102030405060708090A0B0C0D0E0F".parse().unwrap());
        lorawan.f_cnt_up = 7;
        owner.handler.set_device(device.into()).await.unwrap();
    }
    let get = async |dev_id: &str| owner.handler.get_device(&owner.app_id, &dev_id.parse().unwrap()).await.unwrap();
    let before = [get("dev-1").await, get("dev-3").await];
    let dev_ids: Vec<_> = ["dev-1", "nobody", "dev-2"].map(str::to_owned).into();
    let app_id = owner.app_id.to_string();
    let change = |value: Option<&str>| ChangeDevicesRequest {
        app_id: app_id.clone(),
        dev_ids: dev_ids.clone(),
        key: "room".to_owned(),
        value: value.map(str::to_owned),
    };
    for (value, expected) in [(Some("7"), (2, 0)), (Some("7"), (0, 2)), (None, (2, 0)), (None, (0, 2))] {
        let done = owner.handler.change_devices(change(value)).await.unwrap();
        assert_eq!((done.changed, done.unchanged), expected, "{value:?}");
        let [refused] = &done.refused[..] else { panic!("{done:?}") };
        assert!(refused.dev_id == "nobody" && refused.reason.contains("nobody not found"), "{refused:?}");
        let mut after = get("dev-1").await;
        assert_eq!(after.attributes.remove("room").as_deref(), value);
        assert_eq!([after, get("dev-3").await], before, "keys, counters and other devices stay");
    }
    let empty = ChangeDevicesRequest { key: String::new(), ..change(Some("7")) };
    let done = owner.handler.change_devices(empty).await.unwrap();
    assert!(done.changed == 0 && done.refused[0].reason.contains("keys have 1 to 64"), "{done:?}");
}
