//! Access keys: created, shown, used, deleted.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::service::Service;

const PATH: &str = "/api/v2/applications/my-app/access-keys";

/// As v2's SDK for Java sends it, without an `Accept` header; reqwest always has one.
async fn post_without_accept(service: &Service, path: &str, authorization: &str, body: &str) -> String {
    let request = service.request("POST", path, authorization).build().unwrap();
    let address = request.url().socket_addrs(|| None).unwrap()[0];
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (path, length) = (request.url().path(), body.len());
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: {authorization}\r\n");
    let head = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

// Conformance: GET, POST /applications/{app_id}/access-keys; 401, 403, 404, 409
#[tokio::test]
async fn a_client_that_does_not_say_what_it_accepts_gets_what_it_created() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let mine = service.application(&general, "my-app").await;
        let key = r#"{"name": "java", "rights": ["messages:up:r"]}"#;
        let created = post_without_accept(&service, PATH, &mine, key).await;
        assert!(created.starts_with("HTTP/1.1 201") && created.contains(r#""name":"java""#), "{created}");
        let eui = post_without_accept(&service, "/api/v2/applications/my-app/euis", &mine, "").await;
        assert!(eui.starts_with("HTTP/1.1 201") && eui.contains(r#"{"eui":""#), "{eui}");
    }
}

// Conformance: `name` (unique in the application), `key`, `rights`
// Conformance: GET, POST /applications/{app_id}/access-keys; 401, 403, 404, 409
// Conformance: GET, DELETE /applications/{app_id}/access-keys/{keyname}
#[tokio::test]
async fn a_key_is_created_shown_and_deleted() {
    for service in Service::start_on_each_store().await {
        let mine = service.application(&service.user("alice").await, "my-app").await;
        let silent = service.post(PATH, &mine, json!({"name": "first", "rights": ["devices"]})).await;
        assert_eq!((silent.status.as_u16(), silent.text.as_str()), (204, ""));
        let key = service.key(&mine, "my-app", "with space/and slash", &["devices", "settings"]).await;
        let shown = service.get(&format!("{PATH}/with%20space%2Fand%20slash"), &mine).await.json();
        assert_eq!((&shown["key"], &shown["rights"]), (&json!(key), &json!(["settings", "devices"])));
        let names: Vec<_> =
            service.get(PATH, &mine).await.json().as_array().unwrap().iter().map(|key| key["name"].clone()).collect();
        assert_eq!(names, ["default key", "first", "with space/and slash"]);
        assert_eq!(service.post(PATH, &mine, json!({"name": "first", "rights": ["devices"]})).await.error().0, 409);
        let path = format!("{PATH}/first");
        assert_eq!(service.call("DELETE", &path, &mine, Value::Null).await.status, 204);
        assert_eq!(service.call("DELETE", &path, &mine, Value::Null).await.error().0, 404);
        assert_eq!(service.get(&path, &mine).await.error(), (404, "access key `first` not found".to_owned()));
    }
}

// Conformance: `collaborators`, `access_keys`: for callers with the right to see them
#[tokio::test]
async fn callers_cannot_create_or_see_keys_with_more_rights() {
    let service = Service::start().await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    let mine = service.application(&alice, "my-app").await;
    let rights = json!(["settings", "messages:up:r"]);
    let path = "/api/v2/applications/my-app/collaborators/bob";
    assert_eq!(service.call("PUT", path, &mine, rights).await.status, 201);
    let his = service.restrict(&bob, &["apps:my-app"]).await;
    service.key(&mine, "my-app", "strong", &["delete"]).await;
    let weak = service.key(&mine, "my-app", "weak", &["messages:up:r"]).await;
    let strong = service.post(PATH, &his, json!({"name": "more", "rights": ["messages:up:r", "delete"]})).await;
    assert_eq!(strong.error(), (403, "right `delete` cannot be granted by somebody who lacks it".to_owned()));
    for keys in [
        service.get(PATH, &his).await.json(),
        service.get("/api/v2/applications/my-app", &his).await.json()["access_keys"].clone(),
        service.get("/applications", &bob).await.json()[0]["access_keys"].clone(),
    ] {
        let named = |name: &str| keys.as_array().unwrap().iter().find(|key| key["name"] == name).unwrap().clone();
        assert!(named("strong").get("key").is_none(), "left out, not null");
        assert_eq!(named("weak")["key"], json!(weak));
    }
    assert!(service.get(&format!("{PATH}/strong"), &his).await.json().get("key").is_none());
}

#[tokio::test]
async fn refuses_invalid_keys() {
    let service = Service::start().await;
    let mine = service.application(&service.user("alice").await, "my-app").await;
    let long = "x".repeat(101);
    let bodies = [
        json!({"name": "", "rights": ["devices"]}),
        json!({"name": long, "rights": ["devices"]}),
        json!({"name": "two\nlines", "rights": ["devices"]}),
        json!({"name": "none", "rights": []}),
        json!({"name": "twice", "rights": ["devices", "devices"]}),
        json!({"name": "unknown", "rights": ["fly"]}),
        json!({"name": "gateway", "rights": ["gateway:settings"]}),
        json!({"name": "no rights"}),
        json!({"rights": ["devices"]}),
    ];
    for body in bodies {
        assert_eq!(service.post(PATH, &mine, body.clone()).await.error().0, 400, "{body}");
    }
    assert_eq!(service.get(PATH, &mine).await.json().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_application_has_at_most_a_hundred_keys() {
    let service = Service::start().await;
    let mine = service.application(&service.user("alice").await, "my-app").await;
    for number in 1..100 {
        let body = json!({"name": number.to_string(), "rights": ["devices"]});
        assert_eq!(service.post(PATH, &mine, body).await.status, 204);
    }
    let (status, error) = service.post(PATH, &mine, json!({"name": "more", "rights": ["devices"]})).await.error();
    assert_eq!(status, 403);
    assert!(error.contains("the limit is 100"), "{error}");
}
