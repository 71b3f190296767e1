//! Changes are refused while the audit file cannot be written, and none of them is missing there.

use std::{
    fs,
    net::IpAddr,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use server::audit::AuditLog;
use tokio::sync::oneshot;
use tracing::{Dispatch, subscriber::DefaultGuard};
use tracing_subscriber::layer::SubscriberExt;

use crate::service::{PASSWORD, Service};

const REASON: &str = "the audit log cannot be written (No space left on device (os error 28)), so nothing was changed";

/// Records what this thread does.
pub(crate) fn record_here(audit: &AuditLog) -> (DefaultGuard, Dispatch) {
    // With a single subscriber, `tracing` asks only the thread that logs an event first whether anybody wants it.
    let second = Dispatch::new(tracing_subscriber::registry());
    (tracing::subscriber::set_default(tracing_subscriber::registry().with(audit.layer())), second)
}

#[tokio::test]
async fn changes_are_refused_while_the_audit_file_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let (service, audit) = Service::start_audited(&path).await;
    let general = service.user("alice").await;
    let mine = service.application(&general, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    // After the first events, because `tracing` caches for each event whether any thread wants it.
    let _here = record_here(&audit);
    let app = async || service.get("/api/v2/applications/my-app", &mine).await.json();
    let before = app().await;

    fs::remove_file(&path).unwrap();
    symlink("/dev/full", &path).unwrap();
    assert_eq!(
        service.get("/api/v2/users/me", "Bearer wrong").await.status,
        401,
        "the first event that cannot be written"
    );
    let bob = json!({"username": "bob", "email": "bob@example.com", "password": PASSWORD});
    let client = json!({"name": "maps", "description": "", "uri": "https://example.com/", "scope": ["apps"]});
    let changes = [
        ("POST", "/api/v2/users", "", bob),
        ("PATCH", "/api/v2/users/me", &general[..], json!({"email": "other@example.com"})),
        ("POST", "/api/v2/clients", &general[..], client),
        ("POST", "/api/v2/applications", &general[..], json!({"id": "other-app", "name": "Other"})),
        ("POST", "/api/v2/gateways", &general[..], json!({"id": "my-gw", "frequency_plan": "EU_863_870"})),
        ("POST", "/api/v2/components/handlers", &general[..], json!({"id": "my-handler"})),
        ("POST", "/api/v2/applications/my-app/access-keys", &mine[..], json!({"name": "new", "rights": ["devices"]})),
        ("DELETE", "/api/v2/applications/my-app/access-keys/reader", &mine[..], Value::Null),
        ("PUT", "/api/v2/applications/my-app/collaborators/alice", &mine[..], json!(["collaborators"])),
        ("POST", "/api/v2/applications/my-app/euis", &mine[..], Value::Null),
        ("DELETE", "/api/v2/applications/my-app", &mine[..], Value::Null),
    ];
    for (method, path, authorization, body) in &changes {
        let response = service.call(method, path, authorization, body.clone()).await;
        let (status, text) = response.error();
        assert_eq!((status, text.starts_with(REASON)), (503, true), "{method} {path}: {response:?}");
        assert!(response.headers.contains_key("retry-after"), "{method} {path}");
    }
    assert_eq!(app().await, before);
    assert_eq!(service.login("alice", PASSWORD, Value::Null).await.status, 200, "logins go on");
    let exchange = json!({"username": "my-app", "password": key});
    assert_eq!(service.post("/applications/token", "", exchange).await.status, 200, "keys go on");
    assert_eq!(service.login("bob", PASSWORD, Value::Null).await.error().0, 400, "nobody was registered");

    fs::remove_file(&path).unwrap();
    let (method, changed, authorization, body) = &changes[6];
    assert_eq!(service.call(method, changed, authorization, body.clone()).await.status, 204);
    let text = fs::read_to_string(&path).unwrap();
    for event in ["request refused", "\"login\"", "access key created"] {
        assert!(text.contains(event), "{event} is not in {text}");
    }
}

#[tokio::test]
async fn a_change_is_recorded_although_its_client_hangs_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let (service, audit, store) = Service::start_audited_recording(&path).await;
    let general = service.user("alice").await;
    let mine = service.application(&general, "my-app").await;
    // After the first events, because `tracing` caches for each event whether any thread wants it.
    let _here = record_here(&audit);
    let (committed, is_committed) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    store.interrupt_commit(Box::pin(async {
        committed.send(()).unwrap();
        released.await.unwrap();
    }));
    let new = json!({"name": "new", "rights": ["devices"]});
    let request = service.request("POST", "/api/v2/applications/my-app/access-keys", &mine).json(&new);
    let client = tokio::spawn(request.send());
    is_committed.await.unwrap();
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    let names = service.get("/api/v2/applications/my-app/access-keys", &mine).await.text;
    assert!(names.contains("\"new\""), "the key works: {names}");
    assert!(release.send(()).is_ok(), "the change goes on without its client");

    let started = Instant::now();
    while !fs::read_to_string(&path).unwrap().contains("my-app/new") {
        assert!(started.elapsed() < Duration::from_secs(60), "the key is not in the audit file");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let line = fs::read_to_string(&path).unwrap();
    assert!(line.contains("access key created") && !line.contains("unknown"), "{line}");
}

#[tokio::test]
async fn a_user_who_makes_too_many_changes_gets_429_and_others_go_on() {
    let service = Service::start_limited(3).await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    let create = async |general: &str, id: &str| {
        service.post("/api/v2/applications", general, json!({"id": id, "name": "x"})).await
    };
    // The consent at the first login was a change, too.
    assert_eq!(
        (create(&alice, "app-1").await.status.as_u16(), create(&alice, "app-2").await.status.as_u16()),
        (201, 201)
    );
    let refused = create(&alice, "app-3").await;
    assert_eq!((refused.error().0, refused.headers["retry-after"].to_str().unwrap()), (429, "60"));
    assert_eq!(service.get("/api/v2/applications", &alice).await.json().as_array().unwrap().len(), 2);
    assert_eq!(create(&bob, "app-4").await.status, 201);
    service.pass(60);
    assert_eq!(create(&alice, "app-3").await.status, 201);
}

#[tokio::test]
async fn wrong_client_credentials_of_one_address_do_not_hide_those_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let (service, audit) = Service::start_audited(&path).await;
    let from = async |address: [u8; 4]| {
        let client = reqwest::Client::builder().local_address(IpAddr::from(address)).build().unwrap();
        let request = client.post(format!("{}/users/token", service.base)).basic_auth("nobody", Some("wrong"));
        request.json(&json!({"grant_type": "password"})).send().await.unwrap().status()
    };
    assert_eq!(from([127, 0, 0, 1]).await, 401);
    // After the first events, because `tracing` caches for each event whether any thread wants it.
    let _here = record_here(&audit);
    for _ in 0..130 {
        from([127, 0, 0, 1]).await;
    }
    from([127, 0, 0, 2]).await;
    let text = fs::read_to_string(&path).unwrap();
    let refused = |address: &str| text.matches(&format!("token endpoint from {address}")).count();
    assert!(refused("127.0.0.1") < 130, "a flood has a bound");
    assert_eq!(refused("127.0.0.2"), 1, "{text}");
}
