//! Functions that a share of an application's devices tries, over REST, gRPC, MQTT and on two handlers.

use airlock::serve::{Service, Stack};
use api::{
    handler::Application,
    version::{NewCandidate, Trial},
};
use serde_json::{Value, json};
use testing::{MqttClient, RedisProcess};
use types::{Kind, Kinded};

use crate::harness::{Network, Owner, environment, next};

const LIVE: &str = "function Decoder(bytes) { return { n: bytes[0] }; }
function Encoder(fields) { return [1]; }";
const HALF: &str = "function Decoder(bytes) { return { n: bytes[0] / 2 }; }
function Encoder(fields) { return [2]; }";
const FAILING: &str = "function Decoder(bytes) { throw 'no'; }";
/// Enough that some have a candidate with half of them, and some do not.
const DEVICES: usize = 12;

async fn call(network: &Network, owner: &Owner, method: &str, path: &str, body: Value) -> (u16, Value) {
    owner.ask(&network.handler_http(), method, path, body).await
}

/// An owner of devices, with functions that are live.
async fn owner(network: &Network, name: &str) -> Owner {
    let owner = network.owner(name).await;
    for number in 0..DEVICES {
        owner.add_device(&format!("dev-{number}")).await;
    }
    let functions = Application {
        app_id: owner.app_id.to_string(),
        decoder: LIVE.into(),
        encoder: LIVE.into(),
        ..Default::default()
    };
    owner.handler.set_application(functions).await.unwrap();
    owner
}

/// Sends an uplink of each device; returns those for which the other functions ran.
async fn simulate_all(owner: &Owner, listener: &mut MqttClient) -> Vec<String> {
    let mut tried = Vec::new();
    for number in 0..DEVICES {
        let dev_id = format!("dev-{number}");
        owner.simulate(&dev_id, &[8], 1).await.unwrap();
        let (topic, uplink) = next(listener).await;
        assert_eq!(topic, format!("{dev_id}/up"));
        match uplink["payload_fields"]["n"].as_f64() {
            Some(8.0) => {}
            Some(4.0) => tried.push(dev_id),
            other => panic!("{other:?} in {uplink}"),
        }
    }
    tried
}

// Conformance: A share of the devices tries functions, and keeps them, until they are promoted
#[tokio::test(flavor = "multi_thread")]
async fn a_share_of_the_devices_tries_functions_until_they_are_live_for_all() {
    promoted(Network::start().await).await;
    let Some(redis) = RedisProcess::start() else { return };
    promoted(Network::on(&redis, |_| ()).await).await;
}

async fn promoted(network: Network) {
    let owner = owner(&network, "sharer").await;
    let mut listener = owner.listen(&network).await;
    assert_eq!(call(&network, &owner, "GET", "/candidate", Value::Null).await.0, 404);
    let new = json!({"functions": {"decoder": HALF, "encoder": HALF}, "share_percent": 50, "note": "Half"});
    let (status, started) = call(&network, &owner, "POST", "/candidate", new.clone()).await;
    let expected = json!({
        "version": 2, "share_percent": 50.0, "margin_percent": 5.0, "uplinks_min": 20,
        "results": {}, "live_version": 1, "live_results": {},
    });
    assert_eq!((status, started), (200, expected));
    let tried = simulate_all(&owner, &mut listener).await;
    assert!(!tried.is_empty() && tried.len() < DEVICES, "{tried:?}");
    assert_eq!(simulate_all(&owner, &mut listener).await, tried, "devices keep their version");

    let (_, state) = call(&network, &owner, "GET", "/candidate", Value::Null).await;
    let uplinks = (&state["results"]["uplinks"], &state["live_results"]["uplinks"]);
    assert_eq!(uplinks, (&json!(2 * tried.len()), &json!(2 * (DEVICES - tried.len()))));
    assert!(state["results"]["mean_fuel"].as_u64().unwrap() > state["live_results"]["mean_fuel"].as_u64().unwrap());
    encoders(&owner, &tried, &mut listener).await;
    history(&network, &owner, &tried).await;
    refused(&network, &owner, new).await;

    let more = json!({"share_percent": 90, "margin_percent": 1, "uplinks_min": 5});
    let (status, state) = call(&network, &owner, "PUT", "/candidate", more).await;
    assert_eq!((status, &state["share_percent"], &state["margin_percent"]), (200, &json!(90.0), &json!(1.0)));
    let of_more = simulate_all(&owner, &mut listener).await;
    assert!(tried.iter().all(|dev_id| of_more.contains(dev_id)), "{tried:?} {of_more:?}");
    let (_, list) = call(&network, &owner, "GET", "/versions", Value::Null).await;
    assert_eq!((&list["versions"][0]["share_percent"], &list["versions"][1]["live"]), (&json!(90.0), &json!(true)));
    let (_, diff) = call(&network, &owner, "GET", "/versions/2/diff", Value::Null).await;
    assert!(
        diff["diff"].as_str().unwrap().contains("-function Decoder(bytes) { return { n: bytes[0] / 2 }; }"),
        "{diff}"
    );

    let (status, live) = call(&network, &owner, "POST", "/candidate/promote", json!({})).await;
    assert_eq!((status, &live["number"], &live["live"], &live["note"]), (200, &json!(2), &json!(true), &json!("Half")));
    assert_eq!(simulate_all(&owner, &mut listener).await.len(), DEVICES);
    assert_eq!(owner.handler.get_application(&owner.app_id).await.unwrap().decoder, HALF);
    assert_eq!(call(&network, &owner, "POST", "/versions/1/restore", json!({})).await.1["number"], 3);
    network.stack.stop().await;
}

/// Downlinks are encoded by the version that their device has.
async fn encoders(owner: &Owner, tried: &[String], listener: &mut MqttClient) {
    for number in 0..DEVICES {
        let dev_id = format!("dev-{number}");
        let queued = owner.handler.get_application(&owner.app_id).await.unwrap();
        assert_eq!(queued.encoder, LIVE, "clients of v2 see what is live");
        listener.publish(&format!("{}/devices/{dev_id}/down", owner.app_id), r#"{"payload_fields":{"on":1}}"#).await;
        assert_eq!(next(listener).await.0, format!("{dev_id}/down"));
        assert_eq!(next(listener).await.0, format!("{dev_id}/events/down/scheduled"));
        let downlinks = owner.handler.list_downlinks(&owner.app_id, &dev_id.parse().unwrap()).await.unwrap();
        let expected = if tried.contains(&dev_id) { 2 } else { 1 };
        assert_eq!(downlinks[0].payload_raw, [expected], "{dev_id}");
    }
}

/// History has the version that ran, and running it again gives the same.
async fn history(network: &Network, owner: &Owner, tried: &[String]) {
    let (_, page) = call(network, owner, "GET", "/history?version=2", Value::Null).await;
    let records = page["records"].as_array().unwrap();
    assert_eq!(records.len(), 2 * tried.len(), "{page}");
    assert!(records.iter().all(|record| tried.iter().any(|dev_id| record["dev_id"] == *dev_id.as_str())), "{page}");
    let url = format!("{}/applications/{}/history/decode", network.handler_http(), owner.app_id);
    let request = reqwest::Client::new().post(url).header("authorization", owner.token.to_header());
    let reports = request.json(&json!({"verify": true})).send().await.unwrap().text().await.unwrap();
    let reports: Vec<Value> = reports.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sum = |name: &str| reports.iter().filter_map(|report| report[name].as_u64()).sum::<u64>();
    assert_eq!((sum("examined"), sum("equal")), (2 * DEVICES as u64, 2 * DEVICES as u64), "{reports:?}");
}

/// While a share has functions of its own, those of all stay, and there is no second share.
async fn refused(network: &Network, owner: &Owner, new: Value) {
    let other = json!({"decoder": FAILING});
    for (method, path, body) in [
        ("POST", "/candidate", new),
        ("PUT", "", other.clone()),
        ("POST", "/versions", json!({"functions": other})),
        ("POST", "/versions/2/restore", json!({})),
    ] {
        let (status, response) = call(network, owner, method, path, body).await;
        let error = response["error"].as_str().unwrap();
        let expected = "version 2 has a share of 50% of the devices of application sharer-app: first make it live";
        assert!(status == 409 && error.starts_with(expected), "{method} {path}: {status} {error}");
    }
    // As clients of v2 do when they change something else.
    let live = owner.handler.get_application(&owner.app_id).await.unwrap();
    owner.handler.set_application(live).await.unwrap();
    assert_eq!(call(network, owner, "GET", "/candidate", Value::Null).await.0, 200);
}

// Conformance: A share of the devices tries functions, and keeps them, until they are promoted
#[tokio::test(flavor = "multi_thread")]
async fn functions_that_fail_more_are_abandoned_by_themselves_on_two_handlers() {
    let Some(redis) = RedisProcess::start() else { return };
    let network = Network::on(&redis, |_| ()).await;
    let owner = owner(&network, "failing").await;
    let other = Stack::start(network.stack.settings().clone(), Some(Service::Handler), environment()).await.unwrap();
    let handlers = [network.handler_http(), format!("http://{}", other.handler_http_address().unwrap())];
    // Each handler has subscribers of its own.
    let mut listener = owner.listen(&network).await;
    let mut elsewhere = owner.listen_at(&other.mqtt_address().unwrap().to_string()).await;
    let new = json!({"functions": {"decoder": FAILING}, "share_percent": 50, "uplinks_min": 5});
    assert_eq!(call(&network, &owner, "POST", "/candidate", new).await.0, 200);
    let mut sent = 0;
    while call(&network, &owner, "GET", "/candidate", Value::Null).await.0 == 200 {
        let (handler, dev_id) = (&handlers[sent % 2], format!("dev-{}", sent / 2 % DEVICES));
        let path = format!("/devices/{dev_id}/simulate");
        assert_eq!(owner.ask(handler, "POST", &path, json!({"payload": "CA==", "port": 1})).await.0, 200);
        sent += 1;
        assert!(sent < 100 * DEVICES, "it is not abandoned");
    }
    let event = loop {
        let (_, message) = tokio::select! {
            message = next(&mut listener) => message,
            message = next(&mut elsewhere) => message,
        };
        if message["error"].as_str().is_some_and(|error| !error.contains("Unable to decode")) {
            break message;
        }
    };
    let error = event["error"].as_str().unwrap();
    let expected =
        "Version 2 of the payload functions was abandoned, and all devices have version 1 again: it failed on";
    assert!(error.starts_with(expected) && event["functions_version"] == 2, "{event}");
    for number in 0..DEVICES {
        let path = format!("/devices/dev-{number}/simulate");
        let (_, handled) = owner.ask(&handlers[1], "POST", &path, json!({"payload": "CA==", "port": 1})).await;
        assert_eq!(handled["outcome"]["fields"], r#"{"n":8}"#, "{handled}");
    }
    let (_, list) = call(&network, &owner, "GET", "/versions", Value::Null).await;
    assert_eq!((&list["versions"][0]["number"], &list["versions"][0]["share_percent"]), (&json!(2), &Value::Null));
    let noted = &list["versions"][0]["abandoned"];
    assert_eq!((&noted["margin_percent"], &noted["live_version"]), (&json!(5.0), &json!(1)), "{list}");
    assert!(noted["time"].is_string() && noted["results"]["failed"].as_u64() >= Some(5), "{list}");
    assert!(list["versions"][1].get("abandoned").is_none(), "{list}");
    let versions = owner.handler.list_versions(&owner.app_id).await.unwrap();
    let why = versions[0].abandoned.as_ref().unwrap().to_string();
    assert!(error.contains(why.split(", a difference of").next().unwrap()), "{why}: {error}");
    other.stop().await;
    network.stack.stop().await;
}

// Conformance: A share of the devices tries functions, and keeps them, until they are promoted
#[tokio::test(flavor = "multi_thread")]
async fn grpc_has_the_same_candidates() {
    let network = Network::start().await;
    let owner = owner(&network, "grpc").await;
    let app_id = owner.app_id.to_string();
    let functions = Application { app_id: app_id.clone(), decoder: HALF.to_owned(), ..Default::default() };
    let trial = |share_percent| Trial { app_id: app_id.clone(), share_percent, ..Default::default() };
    let new =
        |share| NewCandidate { functions: Some(functions.clone()), trial: Some(trial(share)), ..Default::default() };
    let refused = owner.handler.create_candidate(new(0.0)).await.unwrap_err();
    assert_eq!(refused.kind(), Kind::Invalid);
    assert!(refused.to_string().contains("Share not valid: it must be from 0.01% to 99.99%"), "{refused}");
    let started = owner.handler.create_candidate(new(5.0)).await.unwrap();
    let shown = started.trial.clone().unwrap();
    assert_eq!((started.version, started.live_version, shown.margin_percent), (2, 1, Some(5.0)));
    assert_eq!(owner.handler.get_candidate(&owner.app_id).await.unwrap(), started);
    assert_eq!(owner.handler.create_candidate(new(5.0)).await.unwrap_err().kind(), Kind::AlreadyExists);
    let changed = owner.handler.set_candidate(trial(20.0)).await.unwrap();
    assert_eq!(changed.trial.unwrap().share_percent, 20.0);
    owner.handler.abandon_candidate(&owner.app_id).await.unwrap();
    assert_eq!(owner.handler.get_candidate(&owner.app_id).await.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(owner.handler.create_candidate(new(5.0)).await.unwrap().version, 3);
    let promoted = owner.handler.promote_candidate(&owner.app_id).await.unwrap();
    assert_eq!((promoted.number, promoted.live, promoted.share_percent), (3, true, 0.0));
    network.stack.stop().await;
}
