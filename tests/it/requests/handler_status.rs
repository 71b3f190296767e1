//! Device addresses, the handler's status, and its announcement, as v2 clients request them.

use api::{
    handler::{StatusRequest, handler_manager_client::HandlerManagerClient},
    lorawan::{DevAddrRequest, PrefixesRequest, dev_addr_manager_client::DevAddrManagerClient},
};
use client::{Trust, discovery::DiscoveryClient};
use server::identity::Identity;
use tonic::{Code, Request, transport::Channel};
use types::ServiceName;

use crate::harness::Network;

async fn channel(network: &Network) -> Channel {
    Channel::from_shared(network.handler_http()).unwrap().connect().await.unwrap()
}

// Conformance: Dry runs of downlinks; device addresses are assigned
// Conformance: GetPrefixes, GetDevAddr
#[tokio::test(flavor = "multi_thread")]
async fn device_addresses_have_a_configured_prefix() {
    let prefixes = r#"[
        {"prefix": "26010000/16", "usage": ["otaa", "local"]},
        {"prefix": "27000000/9", "usage": ["abp", "local"]}
    ]"#;
    let network = Network::with(|settings| settings.handler.prefixes = serde_json::from_str(prefixes).unwrap()).await;
    let mut stub = DevAddrManagerClient::new(channel(&network).await);
    let told = stub.get_prefixes(PrefixesRequest {}).await.unwrap().into_inner().prefixes;
    let told: Vec<_> = told.iter().map(|one| (one.prefix.as_str(), one.usage.join(","))).collect();
    assert_eq!(told, [("26010000/16", "otaa,local".to_owned()), ("27000000/9", "abp,local".to_owned())]);
    let mut address = async |usage: &[&str]| {
        let usage = usage.iter().map(ToString::to_string).collect();
        stub.get_dev_addr(DevAddrRequest { usage }).await.map(|response| response.into_inner().dev_addr)
    };
    for _ in 0..20 {
        assert_eq!(address(&["otaa"]).await.unwrap()[..2], [0x26, 0x01]);
        assert_eq!(address(&["local", "abp"]).await.unwrap()[0], 0x27);
    }
    assert_ne!(address(&["abp"]).await.unwrap(), address(&["abp"]).await.unwrap());
    let status = address(&["abp", "otaa"]).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().starts_with("DevAddr prefix with constraints [abp otaa] not found"), "{status}");
    network.stack.stop().await;
}

// Conformance: GetStatus, with rates over one, five and fifteen minutes
#[tokio::test(flavor = "multi_thread")]
async fn only_component_tokens_get_the_status() {
    let network = Network::start().await;
    let owner = network.owner("curious").await;
    let mut stub = HandlerManagerClient::new(channel(&network).await);
    let code = stub.get_status(StatusRequest {}).await.unwrap_err().code();
    assert_eq!(code, Code::Unauthenticated);
    let code = stub.get_status(owner.sign(StatusRequest {})).await.unwrap_err().code();
    assert_eq!(code, Code::PermissionDenied);
    let token = std::fs::read_to_string(network.dir.path().join("handler.token")).unwrap();
    let mut request = Request::new(StatusRequest {});
    request.metadata_mut().insert("token", token.trim().parse().unwrap());
    let status = stub.get_status(request).await.unwrap().into_inner();
    let component = status.component.unwrap();
    assert!(component.memory.unwrap().memory > 0 && component.cpu.unwrap().user > 0.0 && component.goroutines > 1);
    // Rates are present even if nothing has happened yet.
    assert_eq!([status.uplink, status.downlink, status.activations], [Some(Default::default()); 3]);
    assert!(status.system.unwrap().memory.unwrap().total > 0);
    network.stack.stop().await;
}

// Conformance: The handler announces its public key and its certificate
#[tokio::test(flavor = "multi_thread")]
async fn the_announcement_has_certificate_and_public_key() {
    let network = Network::start().await;
    let settings = network.stack.settings();
    let read = |name: &str| std::fs::read_to_string(network.dir.path().join(name)).unwrap();
    let discovery =
        DiscoveryClient::connect(&settings.client.discovery_address, &Trust::Certificate(read("ca.cert"))).unwrap();
    let announced = discovery.get(ServiceName::Handler, &settings.handler.id).await.unwrap();
    let kept = Identity::load_or_create(&network.dir.path().join("handler.pem")).unwrap();
    assert_eq!(announced.public_key, kept.public_key_pem());
    assert_eq!(announced.certificate, read("ca.cert"));
    let url = format!("http://{}/announcements/handler/handler", network.stack.discovery_http_address().unwrap());
    let shown: serde_json::Value = reqwest::get(url).await.unwrap().json().await.unwrap();
    assert_eq!(shown["public_key"], kept.public_key_pem());
    assert!(!shown.to_string().contains("PRIVATE"));
    network.stack.stop().await;
}
