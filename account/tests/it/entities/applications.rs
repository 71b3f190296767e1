//! Applications and their EUIs: created, listed, renamed, deleted, restored.

use airlock_account::Settings;
use serde_json::{Value, json};

use crate::service::{Service, send};

const APP: &str = "/api/v2/applications/my-app";

// Conformance: The creator of an application or gateway is its first collaborator
// Conformance: `id`, `name`, `euis`, `created`, `rights`
// Conformance: `collaborators`, `access_keys`: for callers with the right to see them
// Conformance: Creating takes `id` and `name`
// Conformance: GET /applications/{app_id}
#[tokio::test]
async fn a_new_application_has_the_exact_json_that_clients_read() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let body = json!({"id": "my-app", "name": "Mine", "euis": null, "rights": ["x"], "created": "y", "deleted": 1});
        let response = service.post("/api/v2/applications", &general, body).await;
        assert_eq!(response.status, 201);
        let all =
            ["settings", "delete", "collaborators", "messages:up:r", "messages:up:w", "messages:down:w", "devices"];
        let created = response.json();
        let key = &created["access_keys"][0];
        let expected = json!({
            "id": "my-app", "name": "Mine", "euis": [created["euis"][0]], "created": "2026-01-01T00:00:00.000Z",
            "rights": all,
            "collaborators": [{"username": "alice", "email": "alice@example.com", "rights": all}],
            "access_keys": [{"name": "default key", "key": key["key"], "_id": key["_id"],
                "rights": ["messages:up:r", "messages:down:w"]}],
        });
        assert_eq!(created, expected);
        assert!(created["euis"][0].as_str().unwrap().starts_with("02"));
        let secret = key["key"].as_str().unwrap().strip_prefix("airlock-account.").unwrap();
        assert_eq!((secret.len(), key["_id"].as_str().unwrap().len()), (43, 24));
        let mine = service.restrict(&general, &["apps:my-app"]).await;
        assert_eq!(service.get(APP, &mine).await.json(), created);
        assert_eq!(service.get("/applications", &general).await.json(), json!([created]));
    }
}

// Conformance: Creating takes `id` and `name`
#[tokio::test]
async fn initial_euis_and_access_keys_are_kept() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let body = json!({
        "id": "my-app", "name": "Mine", "description": "ignored", "euis": ["70B3D57ED0000001", "70b3d57ed0000002"],
        "access_keys": [{"name": "first", "rights": ["devices"]}],
    });
    let created = service.post("/api/v2/applications", &general, body).await.json();
    assert_eq!(created["euis"], json!(["70B3D57ED0000001", "70B3D57ED0000002"]));
    let names: Vec<_> = created["access_keys"].as_array().unwrap().iter().map(|key| key["name"].clone()).collect();
    assert_eq!(names, ["first", "default key"]);
    let body = json!({"id": "next-app", "name": "", "euis": ["70B3D57ED0000001"]});
    let (status, error) = service.post("/api/v2/applications", &general, body.clone()).await.error();
    assert_eq!((status, error.as_str()), (409, "EUI 70B3D57ED0000001 belongs to another application"));
    let without = json!({"id": "next-app", "name": ""});
    assert_eq!(service.post("/api/v2/applications", &general, without).await.status, 201, "the id stayed free");
}

// Conformance: PATCH /applications/{app_id}
#[tokio::test]
async fn renaming_changes_nothing_else() {
    let service = Service::start().await;
    let mine = service.application(&service.user("alice").await, "my-app").await;
    let before = service.get(APP, &mine).await.json();
    let body = json!({"id": "other", "name": "New", "created": "2000-01-01T00:00:00Z", "collaborators": [],
        "access_keys": [], "rights": [], "deleted": "now", "euis": []});
    assert_eq!(service.call("PATCH", APP, &mine, body).await.status, 204);
    let mut expected = before;
    expected["name"] = json!("New");
    assert_eq!(service.get(APP, &mine).await.json(), expected);
}

// Conformance: `deleted`: only if it is deleted
// Conformance: GET /applications, `deleted=1`
// Conformance: DELETE /applications/{app_id}
// Conformance: POST /applications/{app_id}/restore
#[tokio::test]
async fn a_deleted_application_is_hidden_until_it_is_restored() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let mine = service.application(&general, "my-app").await;
        let key = format!("Key {}", service.key(&mine, "my-app", "reader", &["messages:up:r"]).await);
        assert_eq!(service.get(APP, &key).await.status, 200);
        assert_eq!(service.call("DELETE", APP, &mine, Value::Null).await.status, 204);

        assert_eq!(service.get(APP, &mine).await.error(), (404, "application `my-app` not found".to_owned()));
        assert_eq!(service.get(APP, &key).await.status, 401);
        assert_eq!(service.call("DELETE", APP, &mine, Value::Null).await.status, 404);
        assert_eq!(service.get("/applications", &general).await.json(), json!([]));
        assert_eq!(service.get("/applications?deleted=0", &general).await.json(), json!([]));
        let listed = service.get("/applications?deleted=1", &general).await.json();
        assert_eq!(listed[0]["deleted"], "2026-01-01T00:00:00.000Z");
        let body = json!({"id": "my-app", "name": ""});
        assert_eq!(service.post("/applications", &general, body).await.status, 409, "the id is taken for ever");

        let again = service.restrict(&general, &["apps:my-app"]).await;
        assert_eq!(service.post(&format!("{APP}/restore"), &again, Value::Null).await.status, 204);
        assert_eq!(service.get(APP, &again).await.json()["rights"], json!(["delete"]), "until the next exchange");
        assert_eq!(service.get(APP, &key).await.status, 200);
        assert!(service.get(APP, &mine).await.json().get("deleted").is_none());
    }
}

// Conformance: GET, POST /applications/{app_id}/euis
#[tokio::test]
async fn euis_are_assigned_added_and_removed() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let (mine, other) =
            (service.application(&general, "my-app").await, service.application(&general, "other-app").await);
        let euis = format!("{APP}/euis");
        let bare = service.post(&euis, &mine, Value::Null).await;
        assert_eq!((bare.status.as_u16(), bare.json().as_str().unwrap().len()), (201, 16));
        let request = service.request("POST", &euis, &mine).header("accept", "application/json");
        let object = send(request).await.json();
        assert_eq!(object.as_object().unwrap().len(), 1);

        let own = format!("{euis}/70B3D57ED0000001");
        let theirs = "/api/v2/applications/other-app/euis/70B3D57ED0000001";
        for _ in 0..2 {
            assert_eq!(service.call("PUT", &own, &mine, Value::Null).await.status, 204, "twice is once");
        }
        assert_eq!(service.call("PUT", theirs, &other, Value::Null).await.status, 409);
        let listed = service.get(&euis, &mine).await.json();
        assert_eq!(listed.as_array().unwrap()[1..], [bare.json(), object["eui"].clone(), json!("70B3D57ED0000001")]);

        assert_eq!(service.call("DELETE", &own, &mine, Value::Null).await.status, 204);
        assert_eq!(service.call("DELETE", &own, &mine, Value::Null).await.status, 404);
        assert_eq!(service.call("PUT", theirs, &other, Value::Null).await.status, 204, "free again");
    }
}

// Conformance: PUT, DELETE /applications/{app_id}/euis/{eui}
// Conformance: An EUI is 16 hexadecimal characters
#[tokio::test]
async fn an_eui_in_a_path_must_be_upper_case_hexadecimal() {
    let service = Service::start().await;
    let mine = service.application(&service.user("alice").await, "my-app").await;
    for eui in ["70b3d57ed0000001", "70B3D57ED000001", "70B3D57ED00000001", "70B3D57ED000000G", "0000000000000000"] {
        for method in ["PUT", "DELETE"] {
            let response = service.call(method, &format!("{APP}/euis/{eui}"), &mine, Value::Null).await;
            assert_eq!(response.error().0, 400, "{method} {eui}");
        }
    }
}

#[tokio::test]
async fn a_full_eui_block_is_reported_and_creates_no_application() {
    let settings = Settings { eui_block: "0200000000000000/56".parse().unwrap(), ..Settings::default() };
    let service = Service::start_with(settings).await;
    let general = service.user("alice").await;
    for app_id in ["app-0", "app-1", "app-2"] {
        let mine = service.application(&general, app_id).await;
        for number in 0..=255 {
            let path = format!("/applications/{app_id}/euis/02000000000000{number:02X}");
            let status = service.call("PUT", &path, &mine, Value::Null).await.status.as_u16();
            assert!([204, 403, 409].contains(&status), "{status} is neither added, full nor taken");
        }
        let drawn = service.post(&format!("/applications/{app_id}/euis"), &mine, Value::Null).await;
        assert_eq!(drawn.error().0, 403);
    }
    let (status, error) = service.post("/applications", &general, json!({"id": "app-3", "name": ""})).await.error();
    assert_eq!(status, 403);
    assert!(error.contains("the block of this network is full"), "{error}");
    assert_eq!(service.get("/applications", &general).await.json().as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_eui_block_is_configurable() {
    for text in ["70B3D57ED0000000/36", "0200000000000000/8"] {
        let block: airlock_account::EuiBlock = text.parse().unwrap();
        assert_eq!(block.to_string(), text);
    }
    for text in ["", "70B3D57ED0000000", "70B3D57ED0000001/36", "70B3D57ED0000000/0", "70B3D57ED0000000/57", "70/8"] {
        assert!(text.parse::<airlock_account::EuiBlock>().is_err(), "{text}");
    }
}
