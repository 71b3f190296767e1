//! Permission to announce components.

use airlock_discovery::Settings;
use api::discovery::{Announcement, Metadata, metadata::Metadata as Served};
use serde_json::json;
use server::{rate_limit::RateLimit, serve::Listeners, telemetry::TelemetrySettings};
use testing::SmallDisk;
use tonic::Code;
use types::{Credential, Secret};

use crate::harness::{PUBLIC_KEY, TestDiscovery, announcement, request};

async fn announce(discovery: &TestDiscovery, message: Announcement, caller: Option<&Credential>) -> (Code, String) {
    match discovery.stub().await.announce(request(message, caller)).await {
        Ok(_) => (Code::Ok, String::new()),
        Err(status) => (status.code(), status.message().to_owned()),
    }
}

// Conformance: Discovery stores announcements, and finds them by service, application
#[tokio::test]
async fn finds_a_component_that_announced_itself() {
    let discovery = TestDiscovery::with_components(&[("handler", "handler-1")]).await;
    let found = discovery.client().get("handler".parse().unwrap(), &"handler-1".parse().unwrap()).await.unwrap();
    assert_eq!(found, announcement("handler", "handler-1"));
}

#[tokio::test]
async fn announcements_are_refused_while_the_audit_file_cannot_be_written() {
    let Some(disk) = SmallDisk::mount() else { return };
    let telemetry =
        TelemetrySettings { audit_file: Some(disk.path().join("audit.log")), ..TelemetrySettings::default() };
    let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
    let discovery = TestDiscovery::audited(&Settings::default(), listeners, &telemetry).await;
    let caller = discovery.account.component("handler", "handler-1");
    disk.fill();
    let (code, text) = announce(&discovery, announcement("handler", "handler-1"), Some(&caller)).await;
    assert!(code == Code::Unavailable && text.contains("the audit log cannot be written"), "{code:?} {text}");
    disk.empty();
    let (code, text) = announce(&discovery, announcement("handler", "handler-1"), Some(&caller)).await;
    assert_eq!(code, Code::Ok, "{text}");
}

#[tokio::test]
async fn a_component_that_makes_too_many_changes_is_told_when_to_retry() {
    let telemetry = TelemetrySettings { audit_changes: RateLimit::new(1, 1), ..TelemetrySettings::default() };
    let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
    let discovery = TestDiscovery::audited(&Settings::default(), listeners, &telemetry).await;
    let caller = discovery.account.component("handler", "handler-1");
    let message = announcement("handler", "handler-1");
    assert_eq!(announce(&discovery, message.clone(), Some(&caller)).await.0, Code::Ok);

    let status = discovery.stub().await.announce(request(message, Some(&caller))).await.unwrap_err();
    let retry_after = status.metadata().get("retry-after").map(|wait| wait.to_str().unwrap());
    assert_eq!((status.code(), retry_after), (Code::ResourceExhausted, Some("3600")));

    let body = json!({ "public_key": PUBLIC_KEY }).to_string();
    let put = reqwest::Client::new().put(discovery.url("/announcements/handler/handler-1")).body(body);
    let response = put.header("authorization", caller.to_header()).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 429);
    assert_eq!(response.headers()["retry-after"], "3600");
    assert_eq!(response.headers()["ratelimit-policy"], "\"changes\";q=1;w=3600");
}

// Conformance: Announce
#[tokio::test]
async fn only_the_component_itself_may_announce() {
    let discovery = TestDiscovery::start().await;
    let account = &discovery.account;
    let callers = [
        (None, Code::Unauthenticated, "no credential"),
        (Some(account.component("handler", "handler-2")), Code::PermissionDenied, "subject handler-2"),
        (Some(account.component("router", "handler-1")), Code::PermissionDenied, "type router"),
        (Some(account.user("my-app", &["settings"])), Code::PermissionDenied, "type user"),
        (Some(account.access_key("my-app", &["settings"])), Code::Unauthenticated, "access keys"),
        (
            Some(account.token(json!({"type": "handler", "sub": "handler-1", "exp": 1}))),
            Code::Unauthenticated,
            "expired",
        ),
        (Some(Credential::Token(Secret::new("a.b.c"))), Code::Unauthenticated, "token not valid"),
        (Some(account.component("handler", "handler-1")), Code::Ok, ""),
    ];
    for (caller, code, text) in callers {
        // An announcement without a public key is no exception.
        let response = announce(&discovery, announcement("handler", "handler-1"), caller.as_ref()).await;
        assert_eq!(response.0, code, "{caller:?}: {response:?}");
        assert!(response.1.contains(text), "{caller:?}: {response:?}");
        let denied = code != Code::PermissionDenied || response.1.starts_with("permission denied: Discovery:");
        assert!(denied, "{response:?}");
    }
}

#[tokio::test]
async fn only_components_of_the_named_issuers_may_announce() {
    let settings = Settings { announce_issuers: vec!["another".to_owned()] };
    let discovery = TestDiscovery::with(&settings).await;
    let caller = discovery.account.component("handler", "handler-1");
    let (code, text) = announce(&discovery, announcement("handler", "handler-1"), Some(&caller)).await;
    assert_eq!(code, Code::PermissionDenied, "{text}");
}

#[tokio::test]
async fn refuses_an_invalid_announcement_and_stores_nothing() {
    let discovery = TestDiscovery::start().await;
    let caller = discovery.account.component("handler", "handler-1");
    let good = announcement("handler", "handler-1");
    let bad = [
        Announcement { id: "*".into(), ..good.clone() },
        Announcement { service_name: "gateway".into(), ..good.clone() },
        Announcement { net_address: "localhost".into(), ..good.clone() },
        Announcement { api_address: "javascript:alert(1)".into(), ..good.clone() },
        Announcement { certificate: "no".into(), ..good.clone() },
        Announcement { public_key: String::new(), ..good.clone() },
    ];
    for message in bad {
        let (code, text) = announce(&discovery, message.clone(), Some(&caller)).await;
        assert_eq!(code, Code::InvalidArgument, "{message:?}: {text}");
    }
    assert!(discovery.client().get_all("handler".parse().unwrap()).await.unwrap().is_empty());
}

#[tokio::test]
async fn announcing_again_replaces_everything_but_the_metadata() {
    let discovery = TestDiscovery::with_components(&[("handler", "handler-1")]).await;
    let owner = discovery.account.user("my-app", &["settings"]);
    let (id, app_id) = ("handler-1".parse().unwrap(), "my-app".parse().unwrap());
    discovery.client().add_application(&owner, &id, &app_id).await.unwrap();

    let other = Metadata { metadata: Some(Served::AppId("stolen".into())) };
    let again = Announcement {
        description: "Moved".into(),
        mqtt_address: String::new(),
        metadata: vec![other],
        ..announcement("handler", "handler-1")
    };
    let Credential::Token(token) = discovery.account.component("handler", "handler-1") else { unreachable!() };
    discovery.client().announce(&token, again.clone()).await.unwrap();

    let found = discovery.client().get("handler".parse().unwrap(), &id).await.unwrap();
    let kept = vec![Metadata { metadata: Some(Served::AppId("my-app".into())) }];
    assert_eq!(found, Announcement { metadata: kept, ..again });
}
