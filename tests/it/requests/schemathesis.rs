//! Schemathesis generates valid and invalid requests from the OpenAPI documents of handler and discovery.

use server::rate_limit::RateLimit;
use testing::Schemathesis;

use crate::harness::Network;

/// Ids that exist, and what is left out.
const PARAMETERS: &str = r#"
[parameters]
"path.app_id" = "strange-app"
"path.dev_id" = "dev-1"
"path.service_name" = "handler"
"path.id" = "handler"
"path.gateway_id" = "my-gateway"
"path.app_eui" = "70B3D57ED0000001"

# It writes no lines of JSON.
[[operations]]
include-path = "/applications/{app_id}/uplinks"
enabled = false
"#;

// Conformance: Every HTTP path is described in OpenAPI, and behaves as described
#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_no_violation_of_the_descriptions() {
    let often = RateLimit::new(1_000_000, 1_000_000);
    let network = Network::with(|settings| {
        (settings.handler.rate_limits.client, settings.handler.rate_limits.application) = (often, often);
        settings.handler.id = "handler".parse().unwrap();
    });
    let network = network.await;
    let owner = network.owner("strange").await;
    owner.add_device("dev-1").await;
    let discovery = format!("http://{}", network.stack.discovery_http_address().unwrap());
    for (service, last) in
        [(discovery, &["DeleteMetadata"][..]), (network.handler_http(), &["DeleteDevice", "DeleteApplication"])]
    {
        let (url, authorization) = (format!("{service}/openapi.json"), owner.token.to_header());
        let Some(schemathesis) =
            Schemathesis::install(env!("CARGO_TARGET_TMPDIR").as_ref(), PARAMETERS, url, authorization)
        else {
            return;
        };
        schemathesis.test_all(last).await;
    }
    network.stack.stop().await;
}
