//! Rate limits of the handler: what a client gets beyond them, and that others are not affected.

use api::handler::ApplicationIdentifier;
use reqwest::Response;
use server::rate_limit::RateLimit;
use tonic::Code;
use types::{AppId, Credential};

use crate::harness::Network;

/// With limits that refill slower than any test.
async fn network(client: u32, application: u32) -> Network {
    Network::with(|settings| {
        settings.handler.rate_limits.client = RateLimit::new(client, 1);
        settings.handler.rate_limits.application = RateLimit::new(application, 1);
    })
    .await
}

async fn list(network: &Network, app_id: &AppId, credential: &Credential) -> Response {
    let url = format!("{}/applications/{app_id}/devices", network.handler_http());
    reqwest::Client::new().get(url).header("authorization", credential.to_header()).send().await.unwrap()
}

// Conformance: 5000 API calls per hour at the handler
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limited_client_is_told_when_to_retry() {
    let network = network(5, 1000).await;
    let (busy, other) = (network.owner("busy").await, network.owner("other").await);
    // The registration was the first call. Calls without the right count too.
    for expected in [200, 200, 200] {
        assert_eq!(list(&network, &busy.app_id, &busy.token).await.status(), expected);
    }
    assert_eq!(list(&network, &other.app_id, &busy.token).await.status(), 403);
    let refused = list(&network, &busy.app_id, &busy.token).await;
    assert_eq!(refused.status(), 429);
    let header = |name: &str| refused.headers()[name].to_str().unwrap().to_owned();
    let wait_s: u64 = header("retry-after").parse().unwrap();
    assert!((3000..=3600).contains(&wait_s), "{wait_s}");
    assert_eq!(header("ratelimit-policy"), "\"client\";q=5;w=18000");
    assert_eq!(header("ratelimit"), format!("\"client\";r=0;t={wait_s}"));
    let body: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(body["code"], 8);
    assert!(body["error"].as_str().unwrap().starts_with("Rate limit for client \""), "{body}");

    let message = ApplicationIdentifier { app_id: busy.app_id.to_string() };
    let status = network.manager().await.get_application(busy.sign(message)).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.metadata().get("retry-after").is_some_and(|wait| wait.to_str().unwrap().parse::<u64>().is_ok()));

    assert_eq!(list(&network, &other.app_id, &other.token).await.status(), 200);
    network.stack.stop().await;
}

// Conformance: 5000 API calls per hour at the handler
#[tokio::test(flavor = "multi_thread")]
async fn all_clients_of_an_application_share_its_rate_limit() {
    let network = network(1000, 3).await;
    let (owner, stranger) = (network.owner("owner").await, network.owner("stranger").await);
    let key = Credential::Key(owner.key.clone());
    // Calls without rights do not use up the application's limit, of which the registration used one.
    for _ in 0..5 {
        assert_eq!(list(&network, &owner.app_id, &stranger.token).await.status(), 403);
        assert_eq!(list(&network, &owner.app_id, &key).await.status(), 403);
    }
    for expected in [200, 200, 429, 429] {
        assert_eq!(list(&network, &owner.app_id, &owner.token).await.status(), expected);
    }
    let refused = list(&network, &owner.app_id, &owner.token).await.text().await.unwrap();
    assert!(refused.contains("Rate limit for application \\\"owner-app\\\" reached"), "{refused}");
    assert_eq!(list(&network, &stranger.app_id, &stranger.token).await.status(), 200);
    network.stack.stop().await;
}
