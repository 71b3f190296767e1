//! Devices that are moved from one application to another over the API.

use std::{path::Path, sync::Arc, time::Duration};

use airlock::serve::Stack;
use api::{downlink::Downlink, rest::account::NewApplication};
use client::{account::AccountClient, handler::HandlerClient};
use handler::{
    device::{Devices, Move},
    sealer::Sealer,
};
use serde_json::{Value, json};
use server::{
    seal::{KeyOwner, SealingKeys},
    system::{OsRandom, SystemClock},
};
use store::{Embedded, StoreClock};
use testing::{FailingStore, MqttClient, RedisProcess};
use tokio::time::{sleep, timeout};
use types::{AppId, ApplicationRight, Clock, Credential, DevId, DevicePath, Kind, Kinded, Scope};

use crate::harness::{MESSAGE_TIMEOUT, Network, Owner, environment, next_of_all};

/// The commits until a move is decided.
const COMMITS_TO_DECIDE: i64 = 3;

/// Another application of the same user, with a token for both.
pub(crate) async fn second_application(network: &Network, owner: &Owner) -> Owner {
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let session = owner.session(&account).await;
    let app_id: AppId = format!("{}-live", owner.app_id).parse().unwrap();
    let new = NewApplication { id: app_id.clone(), name: "Live".to_owned(), euis: vec![], access_keys: vec![] };
    account.create_application(&Credential::Token(session.clone()), &new).await.unwrap();
    let scopes = [&owner.app_id, &app_id].map(|app_id| Scope::App(app_id.clone()));
    let token = Credential::Token(account.restrict_token(&session, &scopes).await.unwrap());
    let keys = account.access_keys(&token, &app_id).await.unwrap();
    let key = keys.into_iter().find(|key| key.rights.contains(&ApplicationRight::MessagesUpRead)).unwrap().key.unwrap();
    let handler = HandlerClient::connect(&network.announcement().await, token.clone()).unwrap();
    handler.register_application(&app_id).await.unwrap();
    Owner { app_id, token, key, handler }
}

fn dev_id(text: &str) -> DevId {
    text.parse().unwrap()
}

/// The next message on a topic. What was published just before somebody listened may come first.
async fn told(listener: &mut MqttClient, topic: &str) -> Value {
    loop {
        let (found, message) = next_of_all(listener).await;
        if found == topic {
            return message;
        }
    }
}

async fn ask(network: &Network, owner: &Owner, method: &str, path: &str, body: &Value) -> (u16, Value) {
    owner.ask(&network.handler_http(), method, path, body.clone()).await
}

async fn story(network: Network) {
    let trial = network.owner("mover").await;
    let live = second_application(&network, &trial).await;
    for (owner, name) in [(&trial, "trial"), (&live, "live")] {
        let decoder = format!("function Decoder(bytes) {{ return {{ from: '{name}', first: bytes[0] }}; }}");
        owner.set_functions([&decoder, "", ""]).await.unwrap();
    }
    trial.add_device("dev-1").await;
    trial.simulate("dev-1", &[1], 1).await.unwrap();
    let waiting = Downlink {
        app_id: trial.app_id.to_string(),
        dev_id: "dev-1".to_owned(),
        payload_raw: vec![7],
        ..Downlink::default()
    };
    trial.handler.schedule_downlink(waiting).await.unwrap();
    let before = trial.handler.get_device(&trial.app_id, &dev_id("dev-1")).await.unwrap();

    let (mut old, mut new) = (trial.listen(&network).await, live.listen(&network).await);
    let ids = [dev_id("dev-1"), dev_id("dev-9")];
    let from = DevicePath { app_id: &trial.app_id, dev_id: &ids[0] };
    let to = DevicePath { app_id: &live.app_id, dev_id: &ids[1] };
    let moved = live.handler.move_device(from, to).await.unwrap();
    assert_eq!((moved.app_id.as_str(), moved.dev_id.as_str()), (live.app_id.as_str(), "dev-9"));
    assert_eq!(moved.dropped_downlinks, 1);
    assert_eq!(told(&mut old, "dev-1/events/delete").await, Value::Null);
    let dropped = told(&mut old, "dev-1/events/down/errors").await;
    assert_eq!(dropped["message"]["payload_raw"], "Bw==");
    assert_eq!(dropped["error"], "the downlink was dropped: its device was moved to another application");
    told(&mut new, "dev-9/events/create").await;

    // It is the same device under its new name.
    let mut expected = before;
    (expected.app_id, expected.dev_id) = (live.app_id.to_string(), "dev-9".to_owned());
    if let Some(api::handler::device::Device::LorawanDevice(lorawan)) = &mut expected.device {
        (lorawan.app_id, lorawan.dev_id) = (live.app_id.to_string(), "dev-9".to_owned());
    }
    assert_eq!(live.handler.get_device(&live.app_id, &dev_id("dev-9")).await.unwrap(), expected);
    assert_eq!(trial.simulate("dev-1", &[1], 1).await.unwrap_err().kind(), Kind::NotFound);
    live.simulate("dev-9", &[2], 1).await.unwrap();
    assert_eq!(told(&mut new, "dev-9/up").await["payload_fields"], json!({"from": "live", "first": 2}));
    assert_eq!(live.handler.list_downlinks(&live.app_id, &dev_id("dev-9")).await.unwrap(), []);

    // Its messages stay where they were recorded.
    let (status, kept) = ask(&network, &trial, "GET", "/history?dev_id=dev-1&kind=up", &json!({})).await;
    assert_eq!((status, kept["records"].as_array().map(Vec::len)), (200, Some(1)), "{kept}");
    refusals(&network, &trial, &live).await;
    network.stack.stop().await;
}

/// The device is in the second application now.
async fn refusals(network: &Network, trial: &Owner, live: &Owner) {
    trial.add_device("dev-1").await;
    let stranger = network.owner("stranger").await;
    let to = |owner: &Owner| json!({"app_id": owner.app_id, "dev_id": "dev-9"});
    for (owner, dev_id, body, status, text) in [
        (live, "dev-9", json!({"app_id": trial.app_id, "dev_id": "dev-1"}), 409, "dev-1 already exists"),
        (live, "dev-9", to(&stranger), 403, "no `devices` right to application stranger-app"),
        (live, "nobody", to(trial), 404, "nobody not found"),
        (live, "dev-9", to(live), 400, "already: name another one"),
        // The token is one for the first application only.
        (trial, "dev-1", to(live), 403, "no `devices` right to application mover-app-live"),
    ] {
        let (found, response) = ask(network, owner, "POST", &format!("/devices/{dev_id}/move"), &body).await;
        assert_eq!(found, status, "{response}");
        assert!(response["error"].as_str().unwrap().contains(text), "{response}");
    }
    // The same request goes through once the id is free; without an id, the device keeps its own.
    trial.handler.delete_device(&trial.app_id, &dev_id("dev-1")).await.unwrap();
    let (status, moved) = ask(network, live, "POST", "/devices/dev-9/move", &json!({"app_id": trial.app_id})).await;
    assert_eq!((status, moved), (200, json!({"app_id": trial.app_id, "dev_id": "dev-9"})));
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test(flavor = "multi_thread")]
async fn a_device_moves_to_another_application_on_the_embedded_store() {
    story(Network::start().await).await;
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test(flavor = "multi_thread")]
async fn a_device_moves_to_another_application_on_redis() {
    let Some(redis) = RedisProcess::start() else { return };
    story(Network::on(&redis, |_| ()).await).await;
}

/// Moves a device in a process that is killed once that is decided.
async fn decide(dir: &Path, moving: &Move) {
    let clock = StoreClock::new(|| SystemClock.now().as_unix_ms());
    let store = Arc::new(FailingStore::over(Arc::new(Embedded::open(&dir.join("airlock.redb"), clock).unwrap())));
    let keys = SealingKeys::load_or_create(KeyOwner::Handler, &dir.join("handler.key"), &OsRandom).unwrap();
    let sealer = Sealer::for_store(keys, store.as_ref(), Arc::new(OsRandom)).await.unwrap();
    let devices = Devices::new(store.clone(), sealer, Arc::new(SystemClock));
    store.fail_after(COMMITS_TO_DECIDE);
    let failed = devices.move_device(moving).await.err().unwrap();
    assert_eq!(failed.kind(), Kind::Unavailable, "{failed}");
}

/// The first event of this kind that history has of a device, once there is one.
async fn kept(network: &Network, owner: &Owner, dev_id: &str, kind: &str) -> Value {
    let path = format!("/history?dev_id={dev_id}&kind={kind}");
    let found = async {
        loop {
            let (status, mut kept) = ask(network, owner, "GET", &path, &json!({})).await;
            match kept["records"].as_array_mut().and_then(Vec::pop) {
                Some(record) if status == 200 => return record,
                _ => sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(MESSAGE_TIMEOUT, found).await.expect("the event is published")
}

// Conformance: A device moves to another application of the handler, whole, once
#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_completed_after_a_restart_has_its_events() {
    let network = Network::start().await;
    let trial = network.owner("mover").await;
    let live = second_application(&network, &trial).await;
    trial.add_device("dev-1").await;
    let waiting = Downlink {
        app_id: trial.app_id.to_string(),
        dev_id: "dev-1".to_owned(),
        payload_raw: vec![7],
        ..Downlink::default()
    };
    trial.handler.schedule_downlink(waiting).await.unwrap();
    let (settings, dir) = (network.stack.settings().clone(), network.dir);
    network.stack.stop().await;
    let [from, to] = [(&trial, "dev-1"), (&live, "dev-9")].map(|(owner, name)| (owner.app_id.clone(), dev_id(name)));
    decide(dir.path(), &Move { from, to }).await;

    let network = Network { stack: Stack::start(settings, None, environment()).await.unwrap(), dir };
    kept(&network, &trial, "dev-1", "delete").await;
    kept(&network, &live, "dev-9", "create").await;
    let dropped = kept(&network, &trial, "dev-1", "down/errors").await;
    let text = dropped.to_string();
    assert!(text.contains("Bw==") && text.contains("its device was moved to another application"), "{text}");
    network.stack.stop().await;
}
