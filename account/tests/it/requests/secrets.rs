//! Secrets do not appear in the log, in the store, or in files that others can read.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use server::{
    seal::{KeyOwner, SealingKeys},
    system::OsRandom,
};

use crate::{
    oauth::authorize::{code, session},
    service::{PASSWORD, Service, send},
};

#[tokio::test]
async fn neither_log_nor_store_contains_a_secret() {
    // Capturing the log per thread is unreliable: `tracing` caches whether a callsite is enabled when another thread
    // logs first. So this is the log of all tests.
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let writer = std::fs::File::create(&log).unwrap();
    tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(writer).init();
    let file = dir.path().join("store.redb");
    let service = Service::start_in(&file).await;
    let general = service.user("alice").await;
    let login = service.login("alice", PASSWORD, Value::Null).await.json();
    service.login("alice", "not the password", Value::Null).await;
    let mine = service.application(&general, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    let body = json!({"username": "my-app", "password": key});
    service.post("/api/v2/applications/token", "", body).await;
    service.get("/api/v2/applications/my-app", &format!("Key {key}")).await;
    send(service.request("POST", "/users/token", "").basic_auth("ttnctl\nforged line", Some("hush")).form(&[("", "")]))
        .await;

    let cookie = session(&service, "alice").await;
    let code = code(&service, &cookie, &vec![("client_id", "ttnctl"), ("response_type", "code")]).await;
    service.get("/api/v2/applications/other-app", &general).await;

    let read = |file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
    let (text, kept) = (read(&log), read(&file));
    let secrets = [
        PASSWORD,
        "not the password",
        "hush",
        key.split_once('.').unwrap().1,
        general.trim_start_matches("Bearer "),
        login["refresh_token"].as_str().unwrap(),
        cookie.trim_start_matches("session="),
        &code,
    ];
    for secret in secrets {
        assert!(!text.contains(secret), "{secret} in the log");
        assert!(!kept.contains(secret), "{secret} in the store");
    }
    let events = [
        "user registered",
        "login refused",
        "login",
        "consent given",
        "code issued",
        "application created",
        "access key created",
        "client refused",
        "request refused",
    ];
    for event in events {
        assert!(text.lines().any(|line| line.contains("audit") && line.contains(event)), "{event} is not in {text}");
    }
    assert!(!text.lines().any(|line| line.starts_with("forged line")));
    assert!(kept.contains("$argon2id$v=19$m=19456,t=2,p=1$"), "passwords are hashed as they should be");
}

#[tokio::test]
async fn the_key_file_is_created_once_and_only_its_owner_can_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("account.key");
    SealingKeys::load_or_create(KeyOwner::Account, &path, &OsRandom).unwrap();
    let first = std::fs::read(&path).unwrap();
    assert_eq!(first.len(), 32);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    SealingKeys::load_or_create(KeyOwner::Account, &path, &OsRandom).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = SealingKeys::load_or_create(KeyOwner::Account, &path, &OsRandom).unwrap_err().to_string();
    assert!(error.contains("set its mode to 600"), "{error}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, b"short").unwrap();
    assert!(
        SealingKeys::load_or_create(KeyOwner::Account, &path, &OsRandom).unwrap_err().to_string().contains("32 bytes")
    );
    let nowhere = dir.path().join("missing").join("account.key");
    assert!(
        SealingKeys::load_or_create(KeyOwner::Account, &nowhere, &OsRandom)
            .unwrap_err()
            .to_string()
            .contains("writable")
    );
}
