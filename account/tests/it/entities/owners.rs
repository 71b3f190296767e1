//! Owners of applications and components: who they are, who may ask, and how they change.

use serde_json::{Value, json};
use store::{Batch, Commit, Key, Tag};
use types::{ApplicationRight, Credential, Grant, ServiceName};

use crate::{oauth::claims::part, service::Service};

const APP: &str = "/api/v2/applications/my-app";

const ALL: [&str; 7] =
    ["settings", "delete", "collaborators", "messages:up:r", "messages:up:w", "messages:down:w", "devices"];

async fn owner(service: &Service, app_id: &str, authorization: &str) -> Value {
    let response = service.get(&format!("/api/v2/applications/{app_id}/owner"), authorization).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["username"].clone()
}

async fn share(service: &Service, path: &str, authorization: &str, username: &str, rights: &[&str]) {
    let path = format!("{path}/collaborators/{username}");
    assert_eq!(service.call("PUT", &path, authorization, json!(rights)).await.status, 201);
}

async fn hand_over(service: &Service, authorization: &str, username: &str) -> u16 {
    service.call("PATCH", APP, authorization, json!({"owner": username})).await.status.as_u16()
}

/// Removes a member of a stored document, as if an older version had written it.
async fn forget_owner(service: &Service, app_id: &str) {
    let key = Key::new(&Tag::application(app_id).unwrap(), "account").unwrap();
    let found = service.store.get(std::slice::from_ref(&key)).await.unwrap().remove(0).unwrap();
    let mut document: Value = serde_json::from_slice(&found.value).unwrap();
    assert!(document.as_object_mut().unwrap().remove("owner").is_some(), "{document}");
    let written = service.store.commit(Batch::new().put(key, document.to_string().into_bytes())).await;
    assert_eq!(written.unwrap(), Commit::Done);
}

#[tokio::test]
async fn whoever_has_a_right_or_is_a_component_of_the_operator_may_ask_for_the_owner() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        let hers = service.application(&alice, "my-app").await;
        let key = service.key(&hers, "my-app", "devices", &["devices"]).await;
        let operators = service.account.component_token(ServiceName::Handler, &"ours".parse().unwrap()).await.unwrap();
        for authorization in [hers.clone(), format!("Key {key}"), format!("Bearer {}", operators.expose())] {
            assert_eq!(owner(&service, "my-app", &authorization).await, "alice");
        }
        let his = service.handler(&bob, "his-handler").await;
        let token = service.get("/api/v2/components/handlers/his-handler/token", &his).await.json();
        let his_handler = format!("Bearer {}", token["token"].as_str().unwrap());
        for (authorization, status) in [("", 401), (&bob, 404), (&his_handler, 403)] {
            assert_eq!(service.get(&format!("{APP}/owner"), authorization).await.error().0, status);
        }
        let client = client::account::AccountClient::new(&service.base).unwrap();
        let token = Credential::Token(operators);
        let found = client.application_owner(&token, &"my-app".parse().unwrap()).await.unwrap();
        assert_eq!(found.username.as_str(), "alice");
        assert!(client.application_owner(&token, &"no-app".parse().unwrap()).await.is_err());
        assert_eq!(service.call("DELETE", APP, &hers, Value::Null).await.status, 204);
        let deleted = client.application_owner(&token, &"my-app".parse().unwrap()).await.unwrap();
        assert_eq!(deleted.username.as_str(), "alice", "what it stored is still there");
    }
}

// Conformance: GET /applications/{app_id}/owner; PATCH /applications/{app_id} with `owner`
#[tokio::test]
async fn the_owner_hands_an_application_over_to_a_collaborator_with_all_rights() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        service.user("carol").await;
        let hers = service.application(&alice, "my-app").await;
        share(&service, APP, &hers, "bob", &ALL[1..]).await;
        assert_eq!(hand_over(&service, &hers, "nobody").await, 404);
        for heir in ["bob", "carol"] {
            assert_eq!(hand_over(&service, &hers, heir).await, 403, "{heir} lacks a right");
        }
        let half = json!({"name": "renamed", "owner": {"username": "carol"}});
        assert_eq!(service.call("PATCH", APP, &hers, half).await.status, 403);
        assert_ne!(service.call("GET", APP, &hers, Value::Null).await.json()["name"], "renamed", "nothing has changed");
        share(&service, APP, &hers, "bob", &ALL).await;
        let his = service.restrict(&bob, &["apps:my-app"]).await;
        assert_eq!(hand_over(&service, &his, "bob").await, 403, "he is not the owner");
        assert_eq!(hand_over(&service, &his, "alice").await, 204, "she is the owner already");
        assert_eq!(owner(&service, "my-app", &his).await, "alice");
        assert_eq!(hand_over(&service, &hers, "bob").await, 204);
        assert_eq!(owner(&service, "my-app", &hers).await, "bob");
        assert_eq!(hand_over(&service, &hers, "alice").await, 403, "she gave it away");
        let as_read = json!({"name": "renamed", "owner": {"username": "bob"}});
        assert_eq!(service.call("PATCH", APP, &hers, as_read).await.status, 204);
        assert_eq!(service.call("PATCH", APP, &hers, json!({})).await.status, 400);
    }
}

#[tokio::test]
async fn when_the_owner_leaves_the_first_one_with_all_rights_becomes_the_owner() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        service.user("carol").await;
        let hers = service.application(&alice, "my-app").await;
        share(&service, APP, &hers, "carol", &["collaborators"]).await;
        share(&service, APP, &hers, "bob", &ALL).await;
        let alice_herself = format!("{APP}/collaborators/alice");
        assert_eq!(service.call("DELETE", &alice_herself, &hers, Value::Null).await.status, 204);
        let his = service.restrict(&bob, &["apps:my-app"]).await;
        assert_eq!(owner(&service, "my-app", &his).await, "bob");
        assert_eq!(service.call("DELETE", &format!("{APP}/collaborators/bob"), &his, Value::Null).await.status, 204);
        let carol = service.general("carol").await;
        let hers = service.restrict(&carol, &["apps:my-app"]).await;
        assert_eq!(owner(&service, "my-app", &hers).await, "carol");
        let carol_herself = format!("{APP}/collaborators/carol");
        assert_eq!(service.call("DELETE", &carol_herself, &hers, Value::Null).await.status, 403, "the last one");
    }
}

#[tokio::test]
async fn documents_of_older_versions_belong_to_their_creator() {
    let service = Service::start().await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    // One of the two has the first id.
    for (creator, username, other, app_id) in [(&alice, "alice", "bob", "app-a"), (&bob, "bob", "alice", "app-b")] {
        let whole = service.application(creator, app_id).await;
        share(&service, &format!("/api/v2/applications/{app_id}"), &whole, other, &ALL).await;
        forget_owner(&service, app_id).await;
        assert_eq!(owner(&service, app_id, &whole).await, username);
        let path = format!("/api/v2/applications/{app_id}");
        let handed_over = service.call("PATCH", &path, &whole, json!({"owner": other})).await;
        assert_eq!(handed_over.status, 204, "its owner can hand it over");
        assert_eq!(owner(&service, app_id, &whole).await, other);
    }
}

fn grant_of(token: &str) -> Grant {
    Grant::of(&serde_json::from_value(part(token, 1)).unwrap()).unwrap()
}

// Conformance: GET /applications/{app_id}/granted-rights
#[tokio::test]
async fn a_grant_gives_what_whoever_made_it_still_has() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        let hers = service.application(&alice, "my-app").await;
        let key = service.key(&hers, "my-app", "reader", &["messages:up:r"]).await;
        share(&service, APP, &hers, "bob", &["settings"]).await;
        let operators = service.account.component_token(ServiceName::Handler, &"ours".parse().unwrap()).await.unwrap();
        let client = client::account::AccountClient::new(&service.base).unwrap();
        let (token, app_id) = (Credential::Token(operators), "my-app".parse().unwrap());
        let rights = async |grant: &Grant| {
            let rights = client.granted_rights(&token, &app_id, grant).await.unwrap();
            rights.into_iter().map(ApplicationRight::as_str).collect::<Vec<_>>()
        };
        let exchanged = client.exchange_key(&app_id, &key.parse().unwrap()).await.unwrap().access_token;
        let by_key = grant_of(exchanged.expose());
        let by_bob = grant_of(service.restrict(&bob, &["apps:my-app"]).await.trim_start_matches("Bearer "));
        assert_eq!(rights(&by_key).await, ["messages:up:r"]);
        assert_eq!(rights(&by_bob).await, ["settings"]);
        assert_eq!(rights(&Grant::Owner).await, ALL);
        let key_path = format!("{APP}/access-keys/reader");
        assert_eq!(service.call("DELETE", &key_path, &hers, Value::Null).await.status, 204);
        let client_path = "/api/v2/users/me/authorized-clients/ttnctl";
        assert_eq!(service.call("DELETE", client_path, &bob, Value::Null).await.status, 204);
        assert!(rights(&by_key).await.is_empty(), "the key was deleted");
        assert!(rights(&by_bob).await.is_empty(), "he revoked the client");
    }
}
