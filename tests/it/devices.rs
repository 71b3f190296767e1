//! Devices over the API: which fields a change keeps, what is unique, and pagination, on every store.

mod find;
pub(crate) mod joins;
pub(crate) mod moves;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use client::handler::Page;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use testing::RedisProcess;

use crate::harness::{Network, Owner, device, next_of_all};

/// HTTP requests of the owner of some devices.
struct Requests<'a> {
    network: &'a Network,
    owner: &'a Owner,
}

impl Requests<'_> {
    async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Value, Vec<String>) {
        self.ask_with(method, path, body, &[]).await
    }

    async fn ask_with(
        &self,
        method: &str,
        path: &str,
        body: Value,
        headers: &[(&str, &str)],
    ) -> (u16, Value, Vec<String>) {
        let url = format!("{}/applications/{}/devices{path}", self.network.handler_http(), self.owner.app_id);
        let request = reqwest::Client::new().request(method.parse().unwrap(), url).json(&body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.header("authorization", self.owner.token.to_header()).send().await.unwrap();
        let counts =
            ["grpc-metadata-total", "grpc-metadata-selected"].map(|name| response.headers().get(name).cloned());
        let counts = counts.into_iter().flatten().map(|count| count.to_str().unwrap().to_owned()).collect();
        (response.status().as_u16(), response.json().await.unwrap(), counts)
    }

    async fn put(&self, dev_id: &str, mut lorawan: Value, more: Value) -> (u16, Value) {
        lorawan["app_id"] = self.owner.app_id.as_str().into();
        lorawan["dev_id"] = dev_id.into();
        let mut body = more;
        body["lorawan_device"] = lorawan;
        let (status, response, _) = self.ask("PUT", &format!("/{dev_id}"), body).await;
        (status, response)
    }

    async fn get(&self, dev_id: &str) -> Value {
        self.ask("GET", &format!("/{dev_id}"), json!({})).await.1
    }

    /// The ids on a page, and its two counts.
    async fn list(&self, query: &str) -> (Vec<String>, Vec<String>) {
        let (status, response, counts) = self.ask("GET", query, json!({})).await;
        assert_eq!(status, 200, "{response}");
        (dev_ids(&response), counts)
    }
}

fn dev_ids(response: &Value) -> Vec<String> {
    let devices = response.get("devices").and_then(Value::as_array).into_iter().flatten();
    devices.map(|device| device["dev_id"].as_str().unwrap().to_owned()).collect()
}

async fn a_change_keeps_keys_and_address_and_nothing_else(requests: &Requests<'_>) {
    let session = json!({
        "dev_eui": "0102030405060708", "app_key": "2b7e151628aed2a6abf7158809cf4f3c", "dev_addr": "26000001",
        "nwk_s_key": "11".repeat(16), "app_s_key": "22".repeat(16), "f_cnt_up": 7, "uses32_bit_f_cnt": true,
        // Only the network says when a device was heard.
        "last_seen": 1,
        "activation_constraints": "abp,local",
    });
    let more = json!({"description": "by the door", "altitude": -3, "attributes": {"floor": "3"}});
    assert_eq!(requests.put("changing", session, more).await, (200, json!({})));
    let stored = &requests.get("changing").await["lorawan_device"];
    assert_eq!((&stored["app_key"], stored.get("last_seen")), (&json!("2B7E151628AED2A6ABF7158809CF4F3C"), None));
    assert_eq!(requests.put("changing", json!({"dev_addr": "", "app_key": null}), json!({})).await.0, 200);
    let app_id = requests.owner.app_id.as_str();
    let left = json!({
        "app_id": app_id, "dev_id": "changing", "lorawan_device": {
            "app_eui": "", "dev_eui": "", "app_id": app_id, "dev_id": "changing", "dev_addr": "",
            "nwk_s_key": "11".repeat(16), "app_s_key": "22".repeat(16), "app_key": "2B7E151628AED2A6ABF7158809CF4F3C",
            "activation_constraints": "local",
        },
    });
    assert_eq!(requests.get("changing").await, left);
    assert_eq!(requests.ask("DELETE", "/changing", json!({})).await.0, 200);
}

async fn a_pair_of_euis_belongs_to_one_device(requests: &Requests<'_>) {
    let euis = |last: u8| json!({"app_eui": "70B3D57ED0000001", "dev_eui": format!("01020304050607{last:02X}")});
    for (dev_id, pair, status) in [
        ("one", euis(1), 200),
        ("two", euis(1), 409),
        ("two", euis(2), 200),
        ("one", euis(2), 409),
        // A pair of EUIs is free again when its device gives it up.
        ("one", euis(3), 200),
        ("two", euis(1), 200),
        ("three", euis(2), 200),
        // So is the AppEUI of a template, which has no DevEUI.
        ("four", json!({"app_eui": "70B3D57ED0000001"}), 200),
        ("five", json!({"app_eui": "70B3D57ED0000001"}), 409),
        ("five", json!({"app_eui": "70B3D57ED0000002"}), 200),
        // Many devices may have no EUIs.
        ("four", json!({}), 200),
        ("five", json!({}), 200),
    ] {
        let (found, response) = requests.put(dev_id, pair.clone(), json!({})).await;
        assert_eq!(found, status, "{dev_id} {pair}: {response}");
    }
    for dev_id in ["one", "two", "three", "four", "five"] {
        assert_eq!(requests.ask("DELETE", &format!("/{dev_id}"), json!({})).await.0, 200, "{dev_id}");
    }
}

async fn a_pair_of_euis_belongs_to_one_application(requests: &Requests<'_>, others: &Requests<'_>) {
    let pair = || json!({"app_eui": "70B3D57ED0000001", "dev_eui": "0102030405060708"});
    assert_eq!(requests.put("one", pair(), json!({})).await.0, 200);
    let (status, response) = others.put("two", pair(), json!({})).await;
    assert_eq!(status, 409, "{response}");
    assert_eq!(response["error"], "Device with AppEUI and DevEUI 0102030405060708 already exists");
    assert_eq!(others.ask("GET", "/two", json!({})).await.0, 404);
    // A device that changes nothing keeps its pair, and another DevEUI or AppEUI is another pair.
    assert_eq!(requests.put("one", pair(), json!({})).await.0, 200);
    assert_eq!(others.put("two", json!({"dev_eui": "0102030405060708"}), json!({})).await.0, 200);
    for (dev_id, status) in [("one", 200), ("two", 404)] {
        assert_eq!(requests.ask("DELETE", &format!("/{dev_id}"), json!({})).await.0, status);
    }
    assert_eq!(others.put("two", pair(), json!({})).await.0, 200);
    assert_eq!(requests.put("one", pair(), json!({})).await.0, 409);
    others.owner.handler.delete_application(&others.owner.app_id).await.unwrap();
    assert_eq!(requests.put("one", pair(), json!({})).await.0, 200);
    assert_eq!(requests.ask("DELETE", "/one", json!({})).await.0, 200);
}

async fn lists_come_in_parts_and_say_how_many_there_are(requests: &Requests<'_>) {
    assert_eq!(requests.ask("GET", "", json!({})).await.1, json!({}));
    for dev_id in ["c3", "a1", "d4", "b2"] {
        assert_eq!(requests.put(dev_id, json!({}), json!({})).await.0, 200);
    }
    for (query, ids, selected) in [
        ("", &["a1", "b2", "c3", "d4"][..], "4"),
        ("?limit=0", &["a1", "b2", "c3", "d4"], "4"),
        ("?limit=2", &["a1", "b2"], "2"),
        ("?limit=2&offset=2", &["c3", "d4"], "2"),
        ("?offset=3", &["d4"], "1"),
        ("?offset=4", &[], "0"),
        ("?limit=99999999&offset=1", &["b2", "c3", "d4"], "3"),
    ] {
        let (found, counts) = requests.list(query).await;
        assert_eq!(found, ids, "{query}");
        assert_eq!(counts, ["4", selected], "{query}");
    }
    // As a gRPC gateway has it; a query takes precedence.
    for (query, limit, status, ids) in
        [("", "2", 200, &["b2", "c3"][..]), ("?limit=1", "2", 200, &["b2"]), ("", "many", 400, &[])]
    {
        let headers = [("grpc-metadata-limit", limit), ("grpc-metadata-offset", "1")];
        let (found, response, _) = requests.ask_with("GET", query, json!({}), &headers).await;
        assert_eq!(
            (found, dev_ids(&response)),
            (status, ids.iter().map(ToString::to_string).collect()),
            "{query} {limit}"
        );
    }
}

async fn nothing_of_a_deleted_application_comes_back(requests: &Requests<'_>) {
    requests.owner.handler.delete_application(&requests.owner.app_id).await.unwrap();
    assert_eq!(requests.ask("GET", "", json!({})).await.0, 404);
    requests.owner.handler.register_application(&requests.owner.app_id).await.unwrap();
    assert_eq!(requests.list("").await, (Vec::new(), vec!["0".to_owned(), "0".to_owned()]));
    assert_eq!(requests.put("a1", json!({"dev_eui": "0102030405060701"}), json!({})).await.0, 200);
}

async fn story(network: Network) {
    let owner = network.owner("keeper").await;
    let requests = Requests { network: &network, owner: &owner };
    a_change_keeps_keys_and_address_and_nothing_else(&requests).await;
    a_pair_of_euis_belongs_to_one_device(&requests).await;
    let other = network.owner("other-keeper").await;
    a_pair_of_euis_belongs_to_one_application(&requests, &Requests { network: &network, owner: &other }).await;
    lists_come_in_parts_and_say_how_many_there_are(&requests).await;
    nothing_of_a_deleted_application_comes_back(&requests).await;
    network.stack.stop().await;
}

// Conformance: Deleting an application deletes everything in it
// Conformance: Set creates or replaces, keeping keys and address; EUIs are unique
#[tokio::test(flavor = "multi_thread")]
async fn devices_on_the_embedded_store_behave_as_in_v2() {
    story(Network::start().await).await;
}

// Conformance: Events `create`, `update` and `delete`
#[tokio::test(flavor = "multi_thread")]
async fn setting_and_deleting_devices_publishes_events() {
    let network = Network::start().await;
    let owner = network.owner("curious").await;
    let mut listener = owner.listen(&network).await;
    let requests = Requests { network: &network, owner: &owner };
    for (place, topic, told) in [
        (json!({"latitude": 52.5, "altitude": 3}), "dev-1/events/create", json!({"latitude": 52.5, "altitude": 3})),
        (json!({"latitude": 52.5, "longitude": 4.25}), "dev-1/events/update", json!({"longitude": 4.25})),
        (json!({"latitude": 52.5, "longitude": 4.25}), "dev-1/events/update", json!({})),
    ] {
        assert_eq!(requests.put("dev-1", json!({}), place).await.0, 200);
        let (heard, mut event) = next_of_all(&mut listener).await;
        let time = event.as_object_mut().unwrap().remove("update_at").unwrap();
        assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
        assert_eq!((heard.as_str(), event), (topic, told));
    }
    assert_eq!(requests.put("dev-1", json!({"dev_eui": "no"}), json!({})).await.0, 400);
    assert_eq!(requests.ask("DELETE", "/dev-1", json!({})).await.0, 200);
    let expected = ("dev-1/events/delete".to_owned(), Value::Null);
    assert_eq!(next_of_all(&mut listener).await, expected, "and nothing of what was refused");
    network.stack.stop().await;
}

// Conformance: Deleting an application deletes everything in it
// Conformance: Set creates or replaces, keeping keys and address; EUIs are unique
// Conformance: One template for each AppEUI; `last_seen` is not the client's to set
#[tokio::test(flavor = "multi_thread")]
async fn devices_on_redis_behave_as_in_v2() {
    let Some(redis) = RedisProcess::start() else { return };
    story(Network::on(&redis, |_| ()).await).await;
}

/// Pages of a list that does not fit one, while devices are changed and others come behind.
// Conformance: Pages of a thousand devices, each with ten attributes
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_thousand_devices_stay_stable_while_devices_change() {
    const DEVICES: usize = 1000;
    let network = Network::start().await;
    let owner = network.owner("fleet").await;
    let name = |number: usize| format!("dev-{number:04}");
    let attributes = |number: usize| {
        let built_in = ["ttn-antenna", "ttn-brand", "ttn-model", "ttn-module-type", "ttn-version"];
        let own = (0..5).map(|place| format!("own-{place}"));
        let names = built_in.into_iter().map(str::to_owned).chain(own);
        names.map(|name| (name.clone(), format!("{name} {number}"))).collect::<BTreeMap<_, _>>()
    };
    let set = async |dev_id: String, number: usize, description: &str| {
        let mut device: api::handler::Device = device(&owner.app_id, &dev_id).into();
        (device.attributes, device.description) = (attributes(number), description.to_owned());
        owner.handler.set_device(device).await.unwrap();
    };
    stream::iter(0..DEVICES).for_each_concurrent(16, |number| set(name(number), number, "before")).await;
    let stop = AtomicBool::new(false);
    let changing = async {
        let mut changed = 0;
        while !stop.load(Ordering::SeqCst) {
            set(name(changed * 7 % DEVICES), changed * 7 % DEVICES, "after").await;
            set(format!("later-{changed}"), changed, "new").await;
            changed += 1;
        }
        changed
    };
    let listing = async {
        for limit in [100, 333] {
            let mut listed = Vec::new();
            while listed.len() < DEVICES {
                let offset = listed.len() as u32;
                let page = owner.handler.list_devices(&owner.app_id, Page { limit, offset }).await.unwrap();
                assert!(page.len() <= limit as usize && !page.is_empty());
                listed.extend(page);
            }
            for (number, device) in listed.iter().take(DEVICES).enumerate() {
                assert_eq!(device.dev_id, name(number), "pages of {limit}");
                assert_eq!(device.attributes, attributes(number), "{}", device.dev_id);
            }
        }
        stop.store(true, Ordering::SeqCst);
    };
    let (changed, ()) = tokio::join!(changing, listing);
    assert!(changed > 0, "nothing changed meanwhile");
    network.stack.stop().await;
}
