//! Secrets do not appear in the log, in the store, or in files that others can read.

use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use server::{
    seal::{KeyOwner, SealingKeys},
    system::OsRandom,
};
use tracing_subscriber::fmt::MakeWriter;

use crate::{
    authorize::{code, session},
    service::{PASSWORD, Service, send},
};

/// The log, including that of other tests.
///
/// Capturing it per thread is unreliable: `tracing` caches whether a callsite is enabled when another thread logs first.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn neither_log_nor_store_contains_a_secret() {
    let log = Log::default();
    tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(log.clone()).init();
    let dir = tempfile::tempdir().unwrap();
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

    let (text, kept) = (log.text(), String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned());
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
