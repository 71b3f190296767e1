//! Changes of the directory while the service runs.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{BYTE, Service, replace};

const TWICE: &str = "function decodeUplink(input) { return { data: { value: 2 * input.bytes[0] } }; }";

#[tokio::test]
async fn follows_its_directory() {
    let service = Service::with(&[("byte", BYTE)]).await;
    assert_eq!(service.value("byte").await, json!({"value": 42}));
    replace(&service.file("byte.js"), TWICE);
    service.until("the new version", async || service.value("byte").await == json!({"value": 84})).await;
    replace(&service.file("other.js"), BYTE);
    service.until("the new codec", async || service.value("other").await == json!({"value": 42})).await;
    fs::remove_file(service.file("byte.js")).unwrap();
    let is_gone = async || service.post("/codecs/byte", &json!({"hex": "01"})).await.0 == 404;
    service.until("the removal", is_gone).await;
    assert_eq!(list(&service).await, json!([{"name": "other"}]));
}

#[tokio::test]
async fn keeps_a_codec_whose_new_version_cannot_be_used() {
    let service = Service::with(&[("byte", BYTE)]).await;
    let bad: [&[u8]; 5] = [b"", b"  \n", b"function decodeUplink(input) {", b"\xff\xfe", &[b' '; 300_000]];
    for text in bad {
        assert_eq!(service.value("byte").await, json!({"value": 42}));
        let new = service.file("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, service.file("byte.js")).unwrap();
        service.until("the problem", async || list(&service).await[0]["problem"].is_string()).await;
        assert_eq!(service.value("byte").await, json!({"value": 42}));
        replace(&service.file("byte.js"), BYTE);
        service.until("the repair", async || list(&service).await[0]["problem"].is_null()).await;
    }
}

#[tokio::test]
async fn a_codec_that_never_worked_says_why() {
    let service = Service::with(&[("bad", "nonsense(")]).await;
    let (status, body) = service.post("/codecs/bad", &json!({"hex": "01"})).await;
    assert_eq!((status, &body["kind"]), (400, &json!("syntax")), "{body}");
    assert!(list(&service).await[0]["problem"].is_string());
    replace(&service.file("bad.js"), BYTE);
    service.until("the repair", async || service.value("bad").await == json!({"value": 42})).await;
}

#[tokio::test]
async fn a_codec_that_is_empty_or_unreadable_has_no_result() {
    let service =
        Service::with(&[("empty", ""), ("encoder", "function encodeDownlink() { return { bytes: [] }; }")]).await;
    for name in ["empty", "encoder"] {
        let (status, body) = service.post(&format!("/codecs/{name}"), &json!({"hex": "01"})).await;
        assert_eq!(status, 400, "{body}");
    }
    let secret = service.file("secret.js");
    fs::write(&secret, [0xff]).unwrap();
    let is_listed = async || list(&service).await.as_array().unwrap().iter().any(|codec| codec["name"] == "secret");
    service.until("the unreadable codec", is_listed).await;
    let (status, body) = service.post("/codecs/secret", &json!({"hex": "01"})).await;
    assert_eq!(status, 503, "{body}");
    assert!(body["error"].as_str().unwrap().contains("cannot read secret.js: it is not UTF-8"), "{body}");
    replace(&secret, BYTE);
    service.until("the repair", async || service.value("secret").await == json!({"value": 42})).await;
}

#[tokio::test]
async fn passes_over_what_is_no_codec() {
    let service = Service::with(&[("byte", BYTE), (".hidden", BYTE), ("with space", BYTE)]).await;
    fs::write(service.file("README.md"), "text").unwrap();
    fs::create_dir(service.file("folder.js")).unwrap();
    std::os::unix::fs::symlink("nowhere", service.file("dangling.js")).unwrap();
    std::os::unix::fs::symlink("byte.js", service.file("linked.js")).unwrap();
    service.until("the link", async || service.value("linked").await == json!({"value": 42})).await;
    assert_eq!(list(&service).await, json!([{"name": "byte"}, {"name": "linked"}]));
}

#[tokio::test]
async fn a_link_out_of_the_directory_is_not_read() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.js");
    fs::write(&secret, TWICE).unwrap();
    let service = Service::with(&[("byte", BYTE), ("changed", BYTE)]).await;
    std::os::unix::fs::symlink(&secret, service.file("linked.js")).unwrap();
    let dir = outside.path().join("codecs");
    std::os::unix::fs::symlink(service.dir.path(), &dir).unwrap();
    std::os::unix::fs::symlink(dir.join("byte.js"), service.file("back.js")).unwrap();
    let is_listed = async || list(&service).await.as_array().unwrap().iter().any(|codec| codec["name"] == "back");
    service.until("the links", is_listed).await;
    assert_eq!(service.value("back").await, json!({"value": 42}), "the way out leads back");
    let refused = async |name: &str| {
        let (_, body) = service.post(&format!("/codecs/{name}"), &json!({"hex": "15"})).await;
        body["error"].as_str().is_some_and(|error| error.contains("a link out of the directory"))
    };
    service.until("the refusal", async || refused("linked").await).await;

    // One that worked before stays as it was, and is said to be wrong.
    fs::remove_file(service.file("changed.js")).unwrap();
    std::os::unix::fs::symlink(&secret, service.file("changed.js")).unwrap();
    let problem = async || {
        let listed = list(&service).await;
        let changed = listed.as_array().unwrap().iter().find(|codec| codec["name"] == "changed").cloned();
        changed.unwrap_or_default().to_string().contains("a link out of the directory")
    };
    service.until("the problem", problem).await;
    assert_ne!(service.value("changed").await, json!({"value": 84}));
}

#[tokio::test]
async fn goes_on_without_its_directory_and_says_so() {
    let service = Service::with(&[("byte", BYTE)]).await;
    assert_eq!(service.value("byte").await, json!({"value": 42}));
    let away = service.dir.path().with_extension("away");
    fs::rename(service.dir.path(), &away).unwrap();
    service.until("the report", async || !service.health.report().await.is_ready()).await;
    assert_eq!(service.value("byte").await, json!({"value": 42}));
    fs::rename(&away, service.dir.path()).unwrap();
    service.until("the recovery", async || service.health.report().await.is_ready()).await;
}

#[tokio::test]
async fn codecs_that_take_long_to_load_hold_up_nobody_who_saves_one() {
    const COUNT: usize = 200;
    let service = Service::with_key(&[]).await;
    for number in 0..COUNT {
        replace(&service.file(&format!("loop{number}.js")), "while (true) {}");
    }
    let loaded = async || list(&service).await.as_array().unwrap().len();
    service.until("the first", async || loaded().await > 0).await;
    // A codec of no other test, with which it would share the sandboxes.
    assert_eq!(service.send(Method::PUT, "/codecs/saved", BYTE).await.status(), 201);
    // The others are still being loaded.
    assert!(loaded().await < COUNT);
    assert_eq!(service.value("saved").await, json!({"value": 42}));
}

async fn list(service: &Service) -> Value {
    service.send(Method::GET, "/codecs", "").await.json::<Value>().await.unwrap()["codecs"].take()
}
