//! Access rights at the handler: every operation with every kind of credential, in one table.

use api::rest::account::NewAccessKey;
use client::account::AccountClient;
use serde_json::{Value, json};
use types::{AccessKey, ApplicationRight, Credential, Secret};

use crate::harness::{Network, Owner, device};

use ApplicationRight::{Collaborators, Delete, Devices, MessagesDownWrite, MessagesUpRead, MessagesUpWrite, Settings};

/// For each of these there is a key with only this right.
const RIGHTS: [ApplicationRight; 7] =
    [Settings, Delete, Collaborators, Devices, MessagesUpRead, MessagesUpWrite, MessagesDownWrite];

/// A method, a path below the application, the rights of which one suffices, and the status of success.
///
/// Deleting the application comes last.
const OPERATIONS: &[(&str, &str, &[ApplicationRight], u16)] = &[
    ("POST", "/applications", &[Settings], 409),
    ("GET", "", &[Settings], 200),
    ("PUT", "", &[Settings], 200),
    ("POST", "", &[Settings], 200),
    ("GET", "/devices", &[Devices], 200),
    ("PUT", "/devices", &[Devices], 200),
    ("POST", "/devices", &[Devices], 200),
    ("GET", "/devices/dev-1", &[Devices], 200),
    ("PUT", "/devices/dev-1", &[Devices], 200),
    ("POST", "/devices/dev-1", &[Devices], 200),
    ("DELETE", "/devices/nobody", &[Devices], 404),
    ("POST", "/devices/dev-1/downlinks", &[MessagesDownWrite], 200),
    ("GET", "/devices/dev-1/downlinks", &[Devices, MessagesDownWrite], 200),
    ("DELETE", "/devices/dev-1/downlinks", &[MessagesDownWrite], 200),
    // It takes the right to the other application, too, which none of the keys has.
    ("POST", "/devices/dev-1/move", &[], 200),
    ("GET", "/find-devices?search=dev", &[Devices], 200),
    ("GET", "/newest-uplinks?dev_ids=dev-1", &[MessagesUpRead], 200),
    ("POST", "/change-devices", &[Devices], 200),
    ("GET", "/history", &[MessagesUpRead], 200),
    ("GET", "/history/chart?dev_id=dev-1", &[MessagesUpRead], 200),
    ("GET", "/history/0000000000000000000000000001", &[MessagesUpRead], 404),
    ("GET", "/history/0000000000000000000000000001/deliveries", &[MessagesUpRead], 404),
    ("GET", "/versions", &[Settings], 200),
    ("POST", "/versions", &[Settings], 200),
    ("GET", "/versions/1", &[Settings], 200),
    ("PUT", "/versions/1", &[Settings], 200),
    ("GET", "/versions/1/diff", &[Settings], 200),
    ("POST", "/versions/1/restore", &[Settings], 200),
    ("GET", "/candidate", &[Settings], 404),
    // These functions are live already.
    ("POST", "/candidate", &[Settings], 400),
    ("PUT", "/candidate", &[Settings], 404),
    ("DELETE", "/candidate", &[Settings], 404),
    ("POST", "/candidate/promote", &[Settings], 404),
    ("GET", "/silence", &[Settings], 200),
    ("PUT", "/silence", &[Settings], 200),
    // Some of these need a second right, which none of the keys has beside the first one.
    ("PUT", "/webhooks/my-hook", &[], 200),
    ("PATCH", "/webhooks/my-hook", &[], 200),
    ("GET", "/webhooks", &[Settings], 200),
    ("GET", "/webhooks/my-hook", &[Settings], 200),
    ("GET", "/webhooks/my-hook/deliveries", &[], 200),
    ("GET", "/webhooks/my-hook/dead-letters", &[], 200),
    ("POST", "/webhooks/my-hook/dead-letters/resend", &[Settings], 200),
    ("DELETE", "/webhooks/my-hook/dead-letters", &[Settings], 200),
    ("POST", "/webhooks/nobody/test", &[Settings], 404),
    ("DELETE", "/webhooks/nobody", &[Settings], 404),
    ("POST", "/devices/dev-1/simulate", &[Devices, MessagesUpWrite], 200),
    ("POST", "/uplinks", &[Devices, MessagesUpWrite], 200),
    ("POST", "/dry-uplink", &[Settings, Devices], 200),
    ("POST", "/dry-downlink", &[Settings, Devices], 200),
    ("DELETE", "", &[Delete], 200),
];

async fn make_key(network: &Network, owner: &Owner, rights: &[ApplicationRight]) -> AccessKey {
    let account = AccountClient::new(&network.stack.settings().client.auth_server).unwrap();
    let name = rights.iter().map(|right| right.as_str().replace(':', "-")).collect::<Vec<_>>().join("-");
    let new = NewAccessKey { name, rights: rights.to_vec() };
    account.add_access_key(&owner.token, &owner.app_id, &new).await.unwrap().key.unwrap()
}

/// All callers, with the status of their refusals: 401 for those without valid credentials.
async fn callers(network: &Network, owner: &Owner) -> Vec<(String, Option<Credential>, Vec<ApplicationRight>, u16)> {
    let stranger = network.owner("stranger").await;
    let handler = std::fs::read_to_string(network.dir.path().join("handler.token")).unwrap();
    let token = |text: &str| Some(Credential::Token(Secret::new(text.trim())));
    let mut callers = vec![
        ("nobody".to_owned(), None, vec![], 401),
        ("garbage".to_owned(), token("a.b.c"), vec![], 401),
        ("the handler's own token".to_owned(), token(&handler), vec![], 403),
        ("another owner".to_owned(), Some(stranger.token), vec![], 403),
        ("another application's key".to_owned(), Some(Credential::Key(stranger.key)), vec![], 401),
    ];
    for right in RIGHTS {
        let key = Credential::Key(make_key(network, owner, &[right]).await);
        callers.push((format!("a key with {right}"), Some(key), vec![right], 403));
    }
    callers
}

async fn ask(network: &Network, owner: &Owner, method: &str, path: &str, caller: Option<&Credential>) -> (u16, Value) {
    let (base, app_id) = (network.handler_http(), owner.app_id.as_str());
    let url =
        if path == "/applications" { format!("{base}{path}") } else { format!("{base}/applications/{app_id}{path}") };
    let body = match path {
        "/applications" | "" => json!({ "app_id": app_id }),
        "/devices" | "/devices/dev-1" => json!(device(&owner.app_id, "dev-1")),
        "/devices/dev-1/downlinks" => json!({"payload_raw": "AQ=="}),
        "/devices/dev-1/move" => json!({"app_id": "another-app"}),
        "/change-devices" => json!({"dev_ids": ["dev-1"], "key": "room", "value": "1"}),
        "/webhooks/my-hook" => json!({"url": "https://example.com/{event}"}),
        "/webhooks/my-hook/dead-letters/resend" => json!({}),
        "/versions" => json!({"payload_format": "cayennelpp"}),
        "/versions/1" | "/versions/1/restore" => json!({"note": "tested"}),
        "/candidate" if method == "POST" => json!({"payload_format": "cayennelpp", "share_percent": 5}),
        "/candidate" => json!({"share_percent": 5}),
        "/silence" => json!({"silent_after_s": 3600}),
        "/dry-downlink" => json!({"app": {}, "payload": "AQ=="}),
        _ => json!({"app": {}, "payload": "AQ==", "port": 1}),
    };
    let mut request = reqwest::Client::new().request(method.parse().unwrap(), url).json(&body);
    if let Some(caller) = caller {
        request = request.header("authorization", caller.to_header());
    }
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

// Conformance: Every operation of the handler, with every kind of credential
#[tokio::test(flavor = "multi_thread")]
async fn every_operation_matches_the_table_for_every_credential() {
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    owner.add_device("dev-1").await;
    let put = ask(&network, &owner, "PUT", "/webhooks/my-hook", Some(&owner.token)).await;
    assert_eq!(put.0, 200, "{put:?}");
    let callers = callers(&network, &owner).await;
    for (method, path, rights, allowed) in OPERATIONS {
        let mut granted = 0;
        for (who, caller, held, refused) in &callers {
            let may = held.iter().any(|right| rights.contains(right));
            let (status, response) = ask(&network, &owner, method, path, caller.as_ref()).await;
            assert_eq!(status, if may { *allowed } else { *refused }, "{method} {path} by {who}: {response}");
            granted += usize::from(may);
        }
        assert_eq!(granted, rights.len(), "{method} {path}");
    }
    network.stack.stop().await;
}

// Conformance: Register on join: the template, its key, the new device
#[tokio::test(flavor = "multi_thread")]
async fn only_device_managers_see_or_change_the_register_on_join_key() {
    let network = Network::start().await;
    let owner = network.owner("owner").await;
    let [settings, both] = [&[Settings][..], &[Settings, Devices]];
    let (settings, both) = (make_key(&network, &owner, settings).await, make_key(&network, &owner, both).await);
    let url = format!("{}/applications/{}", network.handler_http(), owner.app_id);
    let send = async |method: &str, key: &AccessKey, body: Value| -> Value {
        let request = reqwest::Client::new().request(method.parse().unwrap(), &url).json(&body);
        let key = Credential::Key(key.clone());
        request.header("authorization", key.to_header()).send().await.unwrap().json().await.unwrap()
    };
    let kept = json!({"app_id": owner.app_id, "register_on_join_access_key": both.expose()});
    assert_eq!(send("PUT", &both, kept.clone()).await, json!({}));
    assert_eq!(send("GET", &both, json!({})).await, kept);
    assert_eq!(send("GET", &settings, json!({})).await, json!({"app_id": owner.app_id}), "nothing of it is shown");
    for change in [json!({}), json!({"register_on_join_access_key": settings.expose()})] {
        assert_eq!(send("PUT", &settings, change).await, json!({}));
        assert_eq!(send("GET", &both, json!({})).await, kept, "who may not see it does not change it");
    }
    assert_eq!(send("PUT", &both, json!({})).await, json!({}));
    assert_eq!(send("GET", &both, json!({})).await, json!({"app_id": owner.app_id}));
    network.stack.stop().await;
}
