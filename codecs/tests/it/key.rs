//! Access to running and changing codecs.

use std::{fs, sync::Arc};

use codecs::{Codecs, Settings};
use reqwest::Method;
use serde_json::{Value, json};
use server::system::{OsRandom, SystemClock};

use crate::harness::{BYTE, KEY, Service};

#[tokio::test]
async fn with_a_key_every_request_needs_it() {
    let service = Service::with_key(&[("byte", BYTE)]).await;
    for (method, path) in [
        (Method::GET, "/codecs"),
        (Method::GET, "/codecs/byte"),
        (Method::POST, "/codecs/byte"),
        (Method::POST, "/codecs/byte/emqx"),
        (Method::PUT, "/codecs/byte"),
        (Method::DELETE, "/codecs/byte"),
    ] {
        let response = service.send_with(method.clone(), path, &[]).await;
        assert_eq!(response.status(), 401, "{method} {path}");
        assert!(response.headers().contains_key("www-authenticate"), "{method} {path}");
    }
    assert_eq!(service.value("byte").await, json!({"value": 42}));
    assert!(service.file("byte.js").exists());
}

#[tokio::test]
async fn only_the_key_itself_will_do() {
    let service = Service::with_key(&[("byte", BYTE)]).await;
    let other = KEY.replace('0', "1");
    for (values, status) in [
        (vec![format!("Bearer {KEY}")], 200),
        (vec![format!("bearer {KEY}")], 200),
        (vec![format!("Bearer {other}")], 401),
        (vec![format!("Bearer {}", &KEY[..15])], 401),
        (vec![format!("Bearer {KEY}0")], 401),
        (vec![KEY.to_owned()], 401),
        (vec![String::new()], 401),
        (vec![format!("Bearer {KEY}"), format!("Bearer {other}")], 401),
    ] {
        let response = service.send_with(Method::GET, "/codecs", &values).await;
        assert_eq!(response.status(), status, "{values:?}");
    }
}

#[tokio::test]
async fn a_key_that_was_replaced_is_not_accepted_any_more() {
    let service = Service::with_key(&[("byte", BYTE)]).await;
    let path = service.key_file.as_ref().unwrap().path();
    let other = KEY.replace('0', "1");
    let status = async |key: &str| {
        let credentials = [format!("Bearer {key}")];
        service.send_with(Method::GET, "/codecs", &credentials).await.status().as_u16()
    };
    fs::write(path, &other).unwrap();
    service.until("the new key", async || status(&other).await == 200).await;
    assert_eq!(status(KEY).await, 401);
    // Nobody can say which key is right.
    for text in ["", "short", "two words of a key"] {
        fs::write(path, text).unwrap();
        service.until("the refusal", async || status(&other).await == 503).await;
        fs::write(path, &other).unwrap();
        service.until("the key", async || status(&other).await == 200).await;
    }
}

/// A web page could let the name of its host lead to this machine.
#[tokio::test]
async fn without_a_key_a_local_service_answers_for_its_own_hosts_only() {
    let settings = Settings { hosts: vec!["codecs.example".to_owned()], ..Settings::default() };
    let service = Service::start(&[("byte", BYTE)], settings).await;
    for (host, status) in [
        ("localhost:8090", 200),
        ("127.0.0.1", 200),
        ("[::1]:8090", 200),
        ("Codecs.example:443", 200),
        ("evil.example:8090", 403),
        ("evil.codecs.example", 403),
        ("", 403),
    ] {
        assert_eq!(service.send_to(host, "/codecs/byte").await.status(), status, "{host}");
    }
    let service = Service::with_key(&[("byte", BYTE)]).await;
    assert_eq!(service.send_to("evil.example", "/codecs/byte").await.status(), 401);
}

#[tokio::test]
async fn without_a_key_nobody_changes_codecs() {
    let service = Service::with(&[("byte", BYTE)]).await;
    for method in [Method::PUT, Method::DELETE] {
        let response = service.send(method, "/codecs/byte", BYTE).await;
        assert_eq!(response.status(), 403);
        assert!(response.text().await.unwrap().contains("codecs.key_file"));
    }
    assert_eq!(fs::read_to_string(service.file("byte.js")).unwrap(), BYTE);
}

#[tokio::test]
async fn saves_replaces_and_deletes_codecs() {
    let service = Service::with_key(&[]).await;
    assert_eq!(service.send(Method::PUT, "/codecs/byte", BYTE).await.status(), 201);
    assert_eq!(service.value("byte").await, json!({"value": 42}));
    assert_eq!(fs::read_to_string(service.file("byte.js")).unwrap(), BYTE);
    let twice = "function decodeUplink(i) { return { data: { value: 2 * i.bytes[0] } }; }";
    assert_eq!(service.send(Method::PUT, "/codecs/byte", twice).await.status(), 200);
    assert_eq!(service.value("byte").await, json!({"value": 84}));
    assert_eq!(service.send(Method::GET, "/codecs/byte", "").await.text().await.unwrap(), twice);
    assert_eq!(service.send(Method::DELETE, "/codecs/byte", "").await.status(), 200);
    assert_eq!(service.send(Method::DELETE, "/codecs/byte", "").await.status(), 404);
    assert!(!service.file("byte.js").exists());
}

#[tokio::test]
async fn a_codec_that_cannot_be_loaded_is_not_saved() {
    let service = Service::with_key(&[("byte", BYTE)]).await;
    for text in ["function decodeUplink(i) {\n  retrn 1;\n}", "\nimport fs from 'fs';\nfunction decodeUplink(i) {}"] {
        let response = service.send(Method::PUT, "/codecs/byte", text).await;
        let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
        assert_eq!((status.as_u16(), &body["kind"], &body["line"]), (400, &json!("syntax"), &json!(2)), "{body}");
    }
    assert_eq!(service.send(Method::PUT, "/codecs/byte", vec![0xff]).await.status(), 400);
    assert_eq!(fs::read_to_string(service.file("byte.js")).unwrap(), BYTE);
    assert_eq!(service.value("byte").await, json!({"value": 42}));
}

#[tokio::test]
async fn the_number_of_codecs_is_bounded() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), KEY).unwrap();
    let settings = Settings { key_file: Some(file.path().to_owned()), codecs_max: 1, ..Settings::default() };
    let service = Service::start(&[("byte", BYTE)], settings).await;
    assert_eq!(service.send(Method::PUT, "/codecs/other", BYTE).await.status(), 403);
    assert_eq!(service.send(Method::PUT, "/codecs/byte", BYTE).await.status(), 200);
}

#[test]
fn the_settings_must_name_a_directory_and_a_real_key() {
    let short = tempfile::NamedTempFile::new().unwrap();
    fs::write(short.path(), "short\n").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (dir, none) = (Some(dir.path().to_owned()), Some("/nonexistent".into()));
    for (dir, key_file, reason) in [
        (None, None, "set `codecs.dir`"),
        (none.clone(), None, "cannot read the directory of codecs /nonexistent"),
        (dir.clone(), none, "cannot read the key file /nonexistent"),
        (dir, Some(short.path().to_owned()), "at least 16 characters"),
    ] {
        let settings = Settings { dir, key_file, ..Settings::default() };
        let (clock, random) = (Arc::new(SystemClock), Arc::new(OsRandom));
        let opened = Codecs::open(&settings, crate::harness::pool(), clock, random);
        let told = opened.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains(reason), "{told}");
    }
}
