//! Rotation of signing keys while tokens of the previous key are still valid.

use airlock_account::Rotation;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::service::Service;

fn key_of(authorization: &str) -> String {
    let header = authorization.trim_start_matches("Bearer ").split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    header["kid"].as_str().unwrap().to_owned()
}

async fn published(service: &Service) -> Vec<String> {
    let keys = service.get("/.well-known/jwks.json", "").await.json();
    keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

async fn me(service: &Service, authorization: &str) -> u16 {
    service.get("/api/v2/users/me", authorization).await.status.as_u16()
}

// Conformance: A bearer token is verified with the published key
#[tokio::test]
async fn a_planned_rotation_keeps_all_tokens_valid_on_every_instance() {
    for service in Service::start_on_each_store().await {
        let other = service.reopen().await;
        let before = service.user("alice").await;
        let pem = service.get("/key", "").await.text;
        let keys = service.account.rotate_signing_key(Rotation::Planned).await.unwrap();
        assert_eq!(keys.iter().map(|key| key.signs).collect::<Vec<_>>(), [true, false]);
        let second = service.account.rotate_signing_key(Rotation::Planned).await.unwrap_err().to_string();
        assert!(second.starts_with("the next signing key is not in use yet"), "{second}");

        service.pass(10);
        for service in [&service, &other] {
            assert_eq!(published(service).await, [keys[0].id.clone(), keys[1].id.clone()], "published, not signing");
            assert_eq!(service.get("/key", "").await.text, pem);
            assert_eq!(key_of(&service.general("alice").await), keys[0].id);
        }
        service.pass(3600);
        let general = [service.general("alice").await, other.general("alice").await];
        for (service, token) in [(&service, &general[1]), (&other, &general[0])] {
            assert_eq!(key_of(token), keys[1].id);
            assert_eq!(published(service).await[0], keys[1].id);
            assert_ne!(service.get("/key", "").await.text, pem);
            assert_eq!(me(service, token).await, 200, "what one signs the other verifies");
        }
        assert_eq!(key_of(&before), keys[0].id);
        service.pass(94 * 24 * 3600);
        for service in [&service, &other] {
            service.get("/key", "").await;
            assert_eq!(published(service).await, [keys[1].id.clone()], "the old key went with its last token");
        }
    }
}

#[tokio::test]
async fn a_token_of_the_old_key_stays_valid_until_it_expires() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    service.account.rotate_signing_key(Rotation::Planned).await.unwrap();
    service.pass(3590);
    let last = service.general("alice").await;
    service.pass(20);
    assert_eq!((me(&service, &general).await, me(&service, &last).await), (200, 200));
    service.pass(3500);
    assert_eq!((me(&service, &general).await, me(&service, &last).await), (401, 200));
    assert_ne!(key_of(&last), key_of(&service.general("alice").await));
}

#[tokio::test]
async fn an_immediate_rotation_invalidates_every_token_everywhere() {
    for service in Service::start_on_each_store().await {
        let other = service.reopen().await;
        let general = service.user("alice").await;
        let keys = service.account.rotate_signing_key(Rotation::AtOnce).await.unwrap();
        assert_eq!(keys.len(), 1);
        assert_eq!(me(&service, &general).await, 401);
        service.pass(10);
        assert_eq!(me(&other, &general).await, 401);
        let next = other.general("alice").await;
        assert_eq!((me(&service, &next).await, key_of(&next)), (200, keys[0].id.clone()));
    }
}
