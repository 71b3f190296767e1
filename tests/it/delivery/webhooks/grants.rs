//! A webhook acts with the grant of whoever set it, and stops with it.

use std::time::Duration;

use api::rest::account::NewAccessKey;
use client::account::AccountClient;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use types::{ApplicationRight, Credential, Scope};

use super::{bytes, call, receiver::Receiver, start};
use crate::harness::{MESSAGE_TIMEOUT, Network, Owner};

use ApplicationRight::{MessagesUpRead, Settings};

fn account(network: &Network) -> AccountClient {
    AccountClient::new(&network.stack.settings().client.auth_server).unwrap()
}

/// The owner's application, called with a new access key.
async fn with_key(network: &Network, owner: &Owner, name: &str, rights: &[ApplicationRight]) -> Credential {
    let new = NewAccessKey { name: name.to_owned(), rights: rights.to_vec() };
    let key = account(network).add_access_key(&owner.token, &owner.app_id, &new).await.unwrap();
    Credential::Key(key.key.unwrap())
}

async fn call_with(
    network: &Network,
    owner: &Owner,
    credential: &Credential,
    (method, path): (&str, &str),
    body: Value,
) -> (u16, Value) {
    owner.ask_with(credential, &network.handler_http(), (method, &format!("/webhooks{path}")), body).await
}

/// Waits until a webhook is stopped, or no longer.
async fn until_stopped_is(network: &Network, owner: &Owner, is_stopped: bool) {
    let becomes = async {
        loop {
            let (_, shown) = call(&network.handler_http(), owner, "GET", "/my-hook", json!({})).await;
            if shown.get("stopped").is_some() == is_stopped {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(MESSAGE_TIMEOUT, becomes).await.expect("the webhook stops, or goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn setting_a_webhook_and_reading_what_it_did_not_take_needs_the_right_to_read_messages() {
    let network = start(|_| ()).await;
    let owner = network.owner("rights").await;
    let settings_only = with_key(&network, &owner, "settings", &[Settings]).await;
    let both = with_key(&network, &owner, "both", &[Settings, MessagesUpRead]).await;
    let webhook = json!({"url": "https://example.com/"});
    let reads = [("GET", "/my-hook/dead-letters"), ("GET", "/my-hook/deliveries")];
    for (credential, status) in [(&settings_only, 403), (&both, 200)] {
        let put = call_with(&network, &owner, credential, ("PUT", "/my-hook"), webhook.clone()).await;
        assert_eq!(put.0, status, "{put:?}");
    }
    for (credential, status) in [(&settings_only, 403), (&both, 200)] {
        let patch = call_with(&network, &owner, credential, ("PATCH", "/my-hook"), json!({"events": ["up"]})).await;
        assert_eq!(patch.0, status, "{patch:?}");
    }
    for (credential, status) in [(&settings_only, 403), (&both, 200)] {
        for read in reads {
            let listed = call_with(&network, &owner, credential, read, json!({})).await;
            assert_eq!(listed.0, status, "{listed:?}");
        }
    }
    let deleted = call_with(&network, &owner, &settings_only, ("DELETE", "/my-hook"), json!({})).await;
    assert_eq!(deleted.0, 200, "{deleted:?}");
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_stops_with_the_key_that_set_it_and_loses_nothing() {
    let (network, mut receiver) = (start(|_| ()).await, Receiver::start().await);
    let owner = network.owner("key").await;
    owner.add_device("dev-1").await;
    let key = with_key(&network, &owner, "hook", &[Settings, MessagesUpRead]).await;
    let webhook = |path: &str| json!({"url": format!("{}/{path}", receiver.url()), "events": ["up"]});
    let (by_key, by_owner) = (webhook("by-key"), webhook("by-owner"));
    let set = call_with(&network, &owner, &key, ("PUT", "/my-hook"), by_key).await;
    assert_eq!(set.0, 200, "{set:?}");
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    assert_eq!(receiver.next().await.path, "/by-key");

    account(&network).delete_access_key(&owner.token, &owner.app_id, "hook").await.unwrap();
    until_stopped_is(&network, &owner, true).await;
    owner.simulate("dev-1", &[2], 1).await.unwrap();
    let set = call(&network.handler_http(), &owner, "PUT", "/my-hook", by_owner).await;
    assert_eq!(set.0, 200, "{set:?}");
    let waited = receiver.next().await;
    assert_eq!((&*waited.path, &waited.json()["payload_raw"]), ("/by-owner", &json!("Ag==")));
    network.stack.stop().await;
}

// Conformance: A webhook is changed in place
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_webhook_goes_on_with_the_grant_of_whoever_changes_it() {
    let (network, mut receiver) = (start(|_| ()).await, Receiver::start().await);
    let owner = network.owner("heir").await;
    owner.add_device("dev-1").await;
    let key = with_key(&network, &owner, "hook", &[Settings, MessagesUpRead]).await;
    let webhook = json!({"url": receiver.url(), "events": ["up"], "headers": {"X-Key": "a"}});
    let set = call_with(&network, &owner, &key, ("PUT", "/my-hook"), webhook).await;
    assert_eq!(set.0, 200, "{set:?}");
    account(&network).delete_access_key(&owner.token, &owner.app_id, "hook").await.unwrap();
    until_stopped_is(&network, &owner, true).await;
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    let changed = call(&network.handler_http(), &owner, "PATCH", "/my-hook", json!({})).await;
    assert!(changed.0 == 200 && changed.1.get("stopped").is_none(), "{changed:?}");
    let waited = receiver.next().await;
    assert_eq!((waited.header("x-key"), &waited.json()["payload_raw"]), ("a", &json!("AQ==")));
    network.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_goes_on_when_its_collaborator_gets_the_right_back() {
    let (network, mut receiver) = (start(|_| ()).await, Receiver::start().await);
    let (owner, other) = (network.owner("lender").await, network.owner("reader").await);
    owner.add_device("dev-1").await;
    let (account, reader) = (account(&network), "reader".parse().unwrap());
    let give = async |rights: &[ApplicationRight]| {
        account.set_collaborator(&owner.token, &owner.app_id, &reader, rights).await.unwrap();
    };
    give(&[Settings, MessagesUpRead]).await;
    let session = other.session(&account).await;
    let token = account.restrict_token(&session, &[Scope::App(owner.app_id.clone())]).await.unwrap();
    let webhook = json!({"url": receiver.url(), "events": ["up"]});
    let put = ("PUT", "/my-hook");
    assert_eq!(call_with(&network, &owner, &Credential::Token(token), put, webhook).await.0, 200);
    owner.simulate("dev-1", &[1], 1).await.unwrap();
    assert_eq!(bytes(&mut receiver, 1).await, ["AQ=="]);
    give(&[Settings]).await;
    until_stopped_is(&network, &owner, true).await;
    owner.simulate("dev-1", &[2], 1).await.unwrap();
    give(&[Settings, MessagesUpRead]).await;
    until_stopped_is(&network, &owner, false).await;
    assert_eq!(bytes(&mut receiver, 1).await, ["Ag=="]);
    network.stack.stop().await;
}
