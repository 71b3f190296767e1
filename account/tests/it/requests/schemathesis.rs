//! Schemathesis generates valid and invalid requests from the OpenAPI document.

use airlock_account::{RateLimits, Settings};
use serde_json::json;
use server::rate_limit::RateLimit;
use testing::Schemathesis;

use crate::service::Service;

const PARAMETERS: &str = r#"
[parameters]
"path.app_id" = "my-app"
"path.gw_id" = "my-gateway"
"path.services" = "handlers"
"path.id" = "my-handler"
"#;

/// A service without rate limits, and a token for all of its entities.
///
/// Their ids are the examples of the document.
async fn start() -> (Service, String) {
    let limit = RateLimit { burst: 1_000_000, per_hour: 1_000_000 };
    let limits =
        RateLimits { login: limit, user: limit, address: limit, registration: limit, mail: limit, username: limit };
    let service = Service::start_with(Settings { rate_limits: limits, ..Settings::default() }).await;
    let alice = service.user("alice").await;
    service.application(&alice, "my-app").await;
    service.gateway(&alice, "my-gateway").await;
    service.handler(&alice, "my-handler").await;
    let client = json!({"name": "my-client", "uri": "app://callback", "scope": ["apps"]});
    assert_eq!(service.post("/api/v2/clients", &alice, client).await.status, 201);
    let general = ["profile", "apps", "gateways", "components", "clients"];
    let all = [&general[..], &["apps:my-app", "gateways:my-gateway", "components:my-handler"]].concat();
    let token = service.restrict(&alice, &all).await;
    (service, token)
}

// Conformance: The body is `{code, error}`
#[tokio::test(flavor = "multi_thread")]
async fn responses_match_the_openapi_document() {
    let (service, token) = start().await;
    let url = format!("{}/api/v2/openapi.json", service.base);
    let Some(stranger) = Schemathesis::install(env!("CARGO_TARGET_TMPDIR").as_ref(), PARAMETERS, url, token) else {
        return;
    };
    stranger.test_all(&["deleteApplication", "deleteGateway", "deleteComponent"]).await;
}
