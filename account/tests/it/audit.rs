//! Changes are refused while the audit file cannot be written, and none of them is missing there.

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tracing_subscriber::layer::SubscriberExt;

use crate::service::{PASSWORD, Service};

const REASON: &str = "the audit log cannot be written (No space left on device (os error 28)), so nothing was changed";

#[tokio::test]
async fn changes_are_refused_while_the_audit_file_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let (service, audit) = Service::start_audited(&path).await;
    let general = service.user("alice").await;
    let mine = service.application(&general, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    // After the first events, because `tracing` caches for each event whether any thread wants it.
    let _here = tracing::subscriber::set_default(tracing_subscriber::registry().with(audit.layer()));
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
    let _here = tracing::subscriber::set_default(tracing_subscriber::registry().with(audit.layer()));
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
        assert!(started.elapsed() < Duration::from_secs(20), "the key is not in the audit file");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let line = fs::read_to_string(&path).unwrap();
    assert!(line.contains("access key created") && !line.contains("unknown"), "{line}");
}
