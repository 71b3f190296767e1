//! Permission to change what a component serves.

use api::discovery::{MetadataRequest, metadata::Metadata as Served};
use serde_json::json;
use store::{Batch, Commit, Key, Store, Tag};
use tokio::task::JoinSet;
use tonic::Code;
use types::{Credential, Kind, Kinded, ServiceName};

use crate::harness::{TestDiscovery, request, serves};

async fn add(discovery: &TestDiscovery, message: MetadataRequest, caller: Option<&Credential>) -> (Code, String) {
    match discovery.stub().await.add_metadata(request(message, caller)).await {
        Ok(_) => (Code::Ok, String::new()),
        Err(status) => (status.code(), status.message().to_owned()),
    }
}

fn app(id: &str) -> Served {
    Served::AppId(id.into())
}

/// Returns the entities that a component serves, as returned by `Get`.
async fn served(discovery: &TestDiscovery, service: ServiceName, id: &str) -> Vec<Served> {
    let found = discovery.client().get(service, &id.parse().unwrap()).await.unwrap();
    found.metadata.into_iter().filter_map(|metadata| metadata.metadata).collect()
}

// Conformance: Discovery stores announcements, and finds them by service, application
// Conformance: AddMetadata and DeleteMetadata, and the rights that they need
#[tokio::test]
async fn adding_an_application_needs_settings_or_delete() {
    let discovery = TestDiscovery::with_components(&[("handler", "handler-1")]).await;
    let account = &discovery.account;
    let callers = [
        (None, Code::Unauthenticated),
        (Some(account.user("my-app", &["devices", "messages:up:r"])), Code::PermissionDenied),
        (Some(account.user("other-app", &["settings", "delete"])), Code::PermissionDenied),
        (Some(account.token(json!({"scope": ["apps"], "apps": {"my-app": ["settings"]}}))), Code::PermissionDenied),
        (Some(account.component("handler", "handler-1")), Code::PermissionDenied),
        (Some(account.access_key("my-app", &["messages:up:r"])), Code::PermissionDenied),
        (Some(account.access_key("other-app", &["settings"])), Code::Unauthenticated),
        (Some(account.user("my-app", &["settings"])), Code::Ok),
        (Some(account.user("my-app", &["delete"])), Code::Ok),
        (Some(account.access_key("my-app", &["settings"])), Code::Ok),
    ];
    for (caller, code) in callers {
        let response = add(&discovery, serves("handler", "handler-1", app("my-app")), caller.as_ref()).await;
        assert_eq!(response.0, code, "{caller:?}: {response:?}");
    }
    assert_eq!(served(&discovery, ServiceName::Handler, "handler-1").await, [app("my-app")]);
}

// Conformance: GetByAppID, GetByGatewayID, GetByAppEUI
#[tokio::test]
async fn an_application_moves_from_one_handler_to_another() {
    let discovery = TestDiscovery::with_components(&[("handler", "handler-1"), ("handler", "handler-2")]).await;
    let (client, owner) = (discovery.client(), discovery.account.user("my-app", &["settings"]));
    let app_id = "my-app".parse().unwrap();
    for id in ["handler-1", "handler-2", "handler-2"] {
        client.add_application(&owner, &id.parse().unwrap(), &app_id).await.unwrap();
        let found = client.get_by_app_id(&app_id).await.unwrap();
        assert_eq!((found.id.as_str(), found.metadata.len()), (id, 0));
    }
    assert!(served(&discovery, ServiceName::Handler, "handler-1").await.is_empty());
    assert_eq!(served(&discovery, ServiceName::Handler, "handler-2").await, [app("my-app")]);

    // The previous handler cannot remove it.
    client.delete_application(&owner, &"handler-1".parse().unwrap(), &app_id).await.unwrap();
    assert_eq!(client.get_by_app_id(&app_id).await.unwrap().id, "handler-2");
    client.delete_application(&owner, &"handler-2".parse().unwrap(), &app_id).await.unwrap();
    let error = client.get_by_app_id(&app_id).await.unwrap_err();
    assert_eq!(error.to_string(), "discovery:app_id:my-app not found");
    assert!(served(&discovery, ServiceName::Handler, "handler-2").await.is_empty());
}

#[tokio::test]
async fn concurrent_moves_leave_an_application_at_one_handler() {
    let handlers = ["handler-1", "handler-2", "handler-3"];
    let discovery = TestDiscovery::with_components(&handlers.map(|id| ("handler", id))).await;
    let (client, owner) = (discovery.client(), discovery.account.user("my-app", &["settings"]));
    let mut moves = JoinSet::new();
    for id in handlers.into_iter().cycle().take(24) {
        let (client, owner) = (client.clone(), owner.clone());
        moves.spawn(async move {
            let moved = client.add_application(&owner, &id.parse().unwrap(), &"my-app".parse().unwrap()).await;
            // A move that lost too often fails with a conflict.
            assert!(moved.is_ok() || moved.is_err_and(|error| error.kind() == Kind::Conflict));
        });
    }
    moves.join_all().await;

    let holder = client.get_by_app_id(&"my-app".parse().unwrap()).await.unwrap().id;
    for id in handlers {
        let expected = if id == holder { vec![app("my-app")] } else { Vec::new() };
        assert_eq!(served(&discovery, ServiceName::Handler, id).await, expected, "{id}, held by {holder}");
    }
}

#[tokio::test]
async fn deleting_an_application_needs_the_right() {
    let discovery = TestDiscovery::with_components(&[("handler", "handler-1")]).await;
    let (client, id, app_id) = (discovery.client(), "handler-1".parse().unwrap(), "my-app".parse().unwrap());
    client.add_application(&discovery.account.user("my-app", &["settings"]), &id, &app_id).await.unwrap();
    let stranger = discovery.account.user("my-app", &["devices"]);
    let error = client.delete_application(&stranger, &id, &app_id).await.unwrap_err();
    assert_eq!(error.to_string(), r#"permission denied: No "settings" or "delete" rights to Application "my-app""#);
    assert_eq!(client.get_by_app_id(&app_id).await.unwrap().id, "handler-1");
}

#[tokio::test]
async fn a_handler_must_announce_itself_before_it_serves() {
    let discovery = TestDiscovery::start().await;
    let owner = discovery.account.user("my-app", &["settings"]);
    let response = add(&discovery, serves("handler", "handler-1", app("my-app")), Some(&owner)).await;
    assert_eq!(response, (Code::NotFound, "discovery:announcement:handler:handler-1 not found".to_owned()));
}

// Conformance: AddMetadata and DeleteMetadata, and the rights that they need
#[tokio::test]
async fn each_service_serves_its_own_kind_of_metadata() {
    let discovery = TestDiscovery::with_components(&[("handler", "c1"), ("router", "c1"), ("broker", "c1")]).await;
    let owner = discovery.account.token(json!({
        "scope": ["apps:my-app", "gateways:gw-1"],
        "apps": {"my-app": ["settings"]}, "gateways": {"gw-1": ["gateway:delete"]},
    }));
    let broker = discovery.account.component("broker", "c1");
    let things = [
        (app("my-app"), &owner, "handler"),
        (Served::GatewayId("gw-1".into()), &owner, "router"),
        (Served::DevAddrPrefix(vec![7, 0x26, 0, 0, 0]), &broker, "broker"),
        (Served::AppEui(vec![1; 8]), &broker, "nobody"),
    ];
    for (thing, caller, server) in things {
        for service in ["handler", "router", "broker"] {
            let response = add(&discovery, serves(service, "c1", thing.clone()), Some(caller)).await;
            let expected = if service == server { Code::Ok } else { Code::PermissionDenied };
            assert_eq!(response.0, expected, "{service} {thing:?}: {response:?}");
        }
    }
    let response =
        add(&discovery, MetadataRequest { metadata: None, ..serves("handler", "c1", app("a1")) }, None).await;
    assert_eq!(response, (Code::PermissionDenied, "permission denied: Unknown Metadata type".to_owned()));
}

#[tokio::test]
async fn a_token_that_a_component_shows_to_others_does_not_make_them_the_component() {
    let discovery = TestDiscovery::with_components(&[("broker", "c1")]).await;
    let shown = discovery.account.token(json!({
        "type": "broker", "sub": "c1", "scope": ["apps:my-app"], "apps": {"my-app": ["devices"]},
    }));
    let prefix = Served::DevAddrPrefix(vec![7, 0x26, 0, 0, 0]);
    let response = add(&discovery, serves("broker", "c1", prefix), Some(&shown)).await;
    assert_eq!(response.0, Code::PermissionDenied, "{response:?}");
}

#[tokio::test]
async fn a_gateway_chooses_its_own_router() {
    let discovery = TestDiscovery::with_components(&[("router", "router-1")]).await;
    let message = || serves("router", "router-1", Served::GatewayId("gw-1".into()));
    let account = &discovery.account;
    let callers = [
        (account.token(json!({"type": "gateway", "sub": "gw-2"})), Code::PermissionDenied),
        (account.token(json!({"gateways": {"gw-1": ["gateway:delete"]}})), Code::PermissionDenied),
        (account.token(json!({"type": "gateway", "sub": "gw-1"})), Code::Ok),
    ];
    for (caller, code) in callers {
        let response = add(&discovery, message(), Some(&caller)).await;
        assert_eq!(response.0, code, "{response:?}");
    }
}

#[tokio::test]
async fn a_removed_collaborator_no_longer_moves_a_gateway() {
    let discovery = TestDiscovery::with_components(&[("router", "router-1")]).await;
    for (gateway_id, code) in [("kept", Code::Ok), ("lost", Code::PermissionDenied)] {
        let scope = [format!("gateways:{gateway_id}")];
        let token = discovery.account.token(json!({"scope": scope, "gateways": {gateway_id: ["gateway:delete"]}}));
        let message = serves("router", "router-1", Served::GatewayId(gateway_id.into()));
        let response = add(&discovery, message, Some(&token)).await;
        assert_eq!(response.0, code, "{response:?}");
    }
}

#[tokio::test]
async fn prefixes_of_two_brokers_cannot_overlap() {
    let discovery = TestDiscovery::with_components(&[("broker", "broker-1"), ("broker", "broker-2")]).await;
    let prefix = |bits: u8, second: u8| Served::DevAddrPrefix(vec![bits, 0x26, second, 0, 0]);
    let tries = [
        ("broker-1", "broker-1", prefix(16, 1), Code::Ok),
        ("broker-1", "broker-2", prefix(16, 2), Code::PermissionDenied),
        ("broker-2", "broker-2", prefix(7, 0), Code::AlreadyExists),
        ("broker-2", "broker-2", prefix(16, 1), Code::AlreadyExists),
        ("broker-2", "broker-2", prefix(16, 2), Code::Ok),
        ("broker-1", "broker-1", prefix(20, 1), Code::Ok),
        ("broker-1", "broker-1", prefix(33, 1), Code::InvalidArgument),
        ("broker-1", "broker-1", Served::DevAddrPrefix(vec![7, 0x26, 0, 0]), Code::InvalidArgument),
    ];
    for (caller, id, prefix, code) in tries {
        let caller = discovery.account.component("broker", caller);
        let response = add(&discovery, serves("broker", id, prefix.clone()), Some(&caller)).await;
        assert_eq!(response.0, code, "{id} {prefix:?}: {response:?}");
    }
}

#[tokio::test]
async fn a_prefix_is_refused_when_there_are_too_many_to_compare() {
    let discovery = TestDiscovery::with_components(&[("broker", "broker-1")]).await;
    let tag = Tag::service("broker").unwrap();
    let numbers: Vec<u16> = (0..4096).collect();
    for numbers in numbers.chunks(1024) {
        let put = |batch: Batch, number: &u16| {
            let prefix = format!("holder/dev_addr_prefix:2700{number:04X}/32");
            batch.put(Key::new(&tag, &prefix).unwrap(), "broker-1")
        };
        assert_eq!(discovery.store.commit(numbers.iter().fold(Batch::new(), put)).await.unwrap(), Commit::Done);
    }
    let caller = discovery.account.component("broker", "broker-1");
    let one_more = Served::DevAddrPrefix(vec![16, 0x26, 1, 0, 0]);
    let (code, message) = add(&discovery, serves("broker", "broker-1", one_more), Some(&caller)).await;
    assert_eq!(code, Code::PermissionDenied, "{message}");
    let known = Served::DevAddrPrefix(vec![32, 0x27, 0, 0, 7]);
    assert_eq!(add(&discovery, serves("broker", "broker-1", known), Some(&caller)).await.0, Code::Ok);
}
