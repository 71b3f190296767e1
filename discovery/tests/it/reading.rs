//! Reading by id and by what is served, in pages, over gRPC and REST.

use airlock_discovery::Settings;
use api::discovery::GetServiceRequest;
use client::{Trust, discovery::DiscoveryClient};
use serde_json::{Value, json};
use server::{
    serve::Listeners,
    tls::{HTTP_PROTOCOLS, Tls},
};
use testing::ManualClock;
use tonic::Code;
use types::{Kind, Kinded};

use crate::harness::{PUBLIC_KEY, TestDiscovery, request};

/// Returns the status and body of a `GET`.
async fn get(discovery: &TestDiscovery, path: &str) -> (u16, Value) {
    let response = reqwest::get(discovery.url(path)).await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn ids(discovery: &TestDiscovery, service: &str, part: &[(&'static str, &str)]) -> Result<Vec<String>, Code> {
    let mut list = request(GetServiceRequest { service_name: service.into() }, None);
    for (name, number) in part {
        list.metadata_mut().insert(*name, number.parse().unwrap());
    }
    let response = discovery.stub().await.get_all(list).await.map_err(|status| status.code())?;
    Ok(response.into_inner().services.into_iter().map(|announcement| announcement.id).collect())
}

// Conformance: Get, GetAll
#[tokio::test]
async fn a_list_is_ordered_and_paginated() {
    let components = [("handler", "h3"), ("handler", "h1"), ("router", "r1"), ("handler", "h2")];
    let discovery = TestDiscovery::with_components(&components).await;
    assert_eq!(ids(&discovery, "handler", &[]).await.unwrap(), ["h1", "h2", "h3"]);
    assert_eq!(ids(&discovery, "handler", &[("limit", "2")]).await.unwrap(), ["h1", "h2"]);
    assert_eq!(ids(&discovery, "handler", &[("limit", "2"), ("offset", "2")]).await.unwrap(), ["h3"]);
    assert!(ids(&discovery, "handler", &[("offset", "9")]).await.unwrap().is_empty());
    assert!(ids(&discovery, "broker", &[]).await.unwrap().is_empty());
    assert!(ids(&discovery, "unknown", &[]).await.unwrap().is_empty());
    assert_eq!(ids(&discovery, "handler", &[("limit", "many")]).await, Err(Code::InvalidArgument));
}

// Conformance: Get, GetAll
#[tokio::test]
async fn rest_uses_the_json_of_v2() {
    let discovery = TestDiscovery::with_components(&[("handler", "handler-1")]).await;
    let owner = discovery.account.user("my-app", &["settings"]);
    discovery
        .client()
        .add_application(&owner, &"handler-1".parse().unwrap(), &"my-app".parse().unwrap())
        .await
        .unwrap();
    let announcement = json!({
        "id": "handler-1", "service_name": "handler", "description": "The handler handler-1",
        "net_address": "localhost:1904", "public_key": PUBLIC_KEY, "api_address": "http://localhost:8084",
        "mqtt_address": "localhost:1883", "metadata": [{"app_id": "my-app"}],
    });
    assert_eq!(get(&discovery, "/announcements/handler/handler-1").await, (200, announcement.clone()));
    assert_eq!(get(&discovery, "/announcements/handler").await, (200, json!({"services": [announcement]})));
    assert_eq!(get(&discovery, "/announcements/handler?limit=1&offset=1").await, (200, json!({})));
    let paged = reqwest::Client::new().get(discovery.url("/announcements/handler")).header("Grpc-Metadata-Offset", "1");
    assert_eq!(paged.send().await.unwrap().json::<Value>().await.unwrap(), json!({}));
    assert_eq!(get(&discovery, "/announcements/router").await, (200, json!({})));
    assert_eq!(get(&discovery, "/announcements/unknown").await, (200, json!({})));
}

#[tokio::test]
async fn rest_errors_have_the_code_of_grpc() {
    let discovery = TestDiscovery::start().await;
    let missing = "discovery:announcement:handler:handler-1 not found";
    let body = json!({"error": missing, "code": 5, "message": missing});
    assert_eq!(get(&discovery, "/announcements/handler/handler-1").await, (404, body));
    for path in ["/announcements/handler/NO", "/announcements/unknown/handler-1", "/announcements/handler?limit=many"] {
        let (status, body) = get(&discovery, path).await;
        assert_eq!((status, &body["code"]), (400, &json!(3)), "{path}: {body}");
    }
}

#[tokio::test]
async fn a_client_with_the_certificate_reads_over_tls() {
    let dir = tempfile::tempdir().unwrap();
    let tls = Tls::self_signed(dir.path(), &["localhost".to_owned()], &*ManualClock::new()).unwrap();
    let listeners = Listeners::new().tls("127.0.0.1:0", tls.server_config(&HTTP_PROTOCOLS)).await.unwrap();
    let discovery = TestDiscovery::on(&Settings::default(), listeners).await;

    let trust = Trust::Certificate(tls.certificate_pem().to_owned());
    let client = DiscoveryClient::connect(&discovery.address, &trust).unwrap();
    assert!(client.get_all("handler".parse().unwrap()).await.unwrap().is_empty());

    let plain = discovery.client().get_all("handler".parse().unwrap()).await.unwrap_err();
    assert_eq!(plain.kind(), Kind::Unavailable, "{plain:?}");
}
