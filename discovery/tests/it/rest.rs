//! Announcing and changing metadata over HTTP: each path does what its gRPC call does.

use reqwest::Method;
use serde_json::{Value, json};
use types::Credential;

use crate::harness::{PUBLIC_KEY, TestDiscovery};

const HANDLER: &str = "/announcements/handler/handler-1";
const SERVED: &str = "/announcements/handler/handler-1/metadata";

async fn send(
    discovery: &TestDiscovery,
    method: &Method,
    path: &str,
    caller: Option<&Credential>,
    body: &str,
) -> (u16, Value) {
    let mut request = reqwest::Client::new().request(method.clone(), discovery.url(path)).body(body.to_owned());
    if let Some(caller) = caller {
        request = request.header("authorization", caller.to_header());
    }
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn get(discovery: &TestDiscovery, path: &str) -> (u16, Value) {
    send(discovery, &Method::GET, path, None, "").await
}

// Conformance: Announce
#[tokio::test]
async fn a_component_announces_itself() {
    let discovery = TestDiscovery::start().await;
    let (own, other) =
        (discovery.account.component("handler", "handler-1"), discovery.account.component("handler", "other"));
    let known =
        json!({"net_address": "localhost:1904", "mqttAddress": "localhost", "public_key": PUBLIC_KEY, "unknown": 1});
    let body = known.to_string();
    for (caller, status) in [(None, 401), (Some(&other), 403)] {
        assert_eq!(send(&discovery, &Method::PUT, HANDLER, caller, &body).await.0, status);
        assert_eq!(get(&discovery, HANDLER).await.0, 404);
    }
    for method in [Method::PUT, Method::POST] {
        assert_eq!(send(&discovery, &method, HANDLER, Some(&own), &body).await, (200, json!({})));
        let announced = json!({
            "id": "handler-1", "service_name": "handler", "net_address": "localhost:1904", "public_key": PUBLIC_KEY,
            "mqtt_address": "localhost",
        });
        assert_eq!(get(&discovery, HANDLER).await, (200, announced));
    }
    for (path, body, text) in [
        (HANDLER, "[]", "JSON object"),
        (HANDLER, "{", "Body not valid"),
        (HANDLER, r#"{"id": "handler-2"}"#, "the path says"),
        (HANDLER, r#"{"net_address": "javascript:alert(1)"}"#, "NetAddress not valid"),
        (HANDLER, r#"{"net_address": "localhost:1904"}"#, "PublicKey not valid"),
        (
            HANDLER,
            &json!({"public_key": PUBLIC_KEY, "api_address": "http://a\r\nb"}).to_string(),
            "ApiAddress not valid",
        ),
        ("/announcements/gateway/handler-1", "{}", "service name"),
        ("/announcements/handler/a*", "{}", "ComponentID"),
    ] {
        let (status, response) = send(&discovery, &Method::PUT, path, Some(&own), body).await;
        assert!(status == 400 && response["code"] == 3, "{path} {body}: {response}");
        assert!(response["error"].as_str().unwrap().contains(text), "{path} {body}: {response}");
    }
}

// Conformance: AddMetadata and DeleteMetadata, and the rights that they need
// Conformance: GetByAppID, GetByGatewayID, GetByAppEUI
#[tokio::test]
async fn metadata_is_added_found_and_deleted() {
    let discovery =
        TestDiscovery::with_components(&[("handler", "handler-1"), ("router", "router-1"), ("broker", "broker-1")])
            .await;
    let account = &discovery.account;
    let gateway = account.token(json!({"type": "gateway", "sub": "gw-1"}));
    let cases = [
        (
            "handler/handler-1",
            account.user("my-app", &["settings"]),
            json!({"app_id": "my-app"}),
            "app_id=my-app",
            Some("/announcements/handler/by-app-id/my-app"),
        ),
        (
            "router/router-1",
            gateway,
            json!({"gateway_id": "gw-1"}),
            "gateway_id=gw-1",
            Some("/announcements/router/by-gateway-id/gw-1"),
        ),
        (
            "broker/broker-1",
            account.component("broker", "broker-1"),
            json!({"dev_addr_prefix": "ByYAAAA="}),
            "dev_addr_prefix=ByYAAAA%3D",
            None,
        ),
    ];
    for (component, caller, body, query, found_at) in cases {
        let path = format!("/announcements/{component}/metadata");
        let stranger = account.user("other-app", &["settings"]);
        for (caller, status) in [(None, 401), (Some(&stranger), 403)] {
            assert_eq!(send(&discovery, &Method::POST, &path, caller, &body.to_string()).await.0, status, "{body}");
        }
        assert_eq!(send(&discovery, &Method::POST, &path, Some(&caller), &body.to_string()).await, (200, json!({})));
        let (_, announced) = get(&discovery, &format!("/announcements/{component}")).await;
        assert_eq!(announced["metadata"], json!([body]));
        if let Some(found_at) = found_at {
            let (status, found) = get(&discovery, found_at).await;
            assert!(status == 200 && component.ends_with(found["id"].as_str().unwrap()), "{found}");
            assert!(found.get("metadata").is_none(), "{found}");
        }
        let path = format!("{path}?{query}");
        assert_eq!(send(&discovery, &Method::DELETE, &path, Some(&stranger), "").await.0, 403);
        assert_eq!(send(&discovery, &Method::DELETE, &path, Some(&caller), "").await, (200, json!({})));
        let (_, announced) = get(&discovery, &format!("/announcements/{component}")).await;
        assert_eq!(announced.get("metadata"), None, "{announced}");
        if let Some(found_at) = found_at {
            assert_eq!(get(&discovery, found_at).await.0, 404);
        }
    }
}

#[tokio::test]
async fn refuses_metadata_that_no_component_can_serve() {
    let discovery = TestDiscovery::with_components(&[("handler", "handler-1")]).await;
    let owner = discovery.account.user("my-app", &["settings"]);
    for (body, status) in [
        ("", 400),
        ("{}", 400),
        (r#"{"app_id": "my-app", "gateway_id": "gw-1"}"#, 400),
        (r#"{"app_id": "My App"}"#, 400),
        (r#"{"dev_addr_prefix": "IQAAAAA="}"#, 400),
        (r#"{"app_eui": "AAAAAAAAAAE="}"#, 403),
        (r#"{"gateway_id": "gw-1"}"#, 403),
    ] {
        let (found, response) = send(&discovery, &Method::POST, SERVED, Some(&owner), body).await;
        assert_eq!(found, status, "{body}: {response}");
    }
    for (query, status) in [("", 400), ("?app_id=a&gateway_id=b", 400), ("?sort=up", 400), ("?app_id=other-app", 403)] {
        let path = format!("{SERVED}{query}");
        let (found, response) = send(&discovery, &Method::DELETE, &path, Some(&owner), "").await;
        assert_eq!(found, status, "{query}: {response}");
    }
    for (path, status) in [
        ("/announcements/handler/by-app-id/No", 400),
        ("/announcements/handler/by-app-id/nobody", 404),
        ("/announcements/handler/by-app-eui/0102", 400),
        ("/announcements/handler/by-app-eui/0000000000000000", 400),
        ("/announcements/handler/by-app-eui/0102030405060708", 404),
        ("/announcements/router/by-gateway-id/a:b", 400),
        ("/announcements/broker/by-app-id/my-app", 404),
    ] {
        assert_eq!(get(&discovery, path).await.0, status, "{path}");
    }
}
