//! The answers to services in the same process are those to services elsewhere.

use std::fs;

use serde_json::{Value, json};
use types::{AccessKey, AppId, GatewayId, Kind, Kinded, Secret};

use crate::{
    oauth::claims::part,
    processes::audit::record_here,
    service::{PASSWORD, Service},
};

const APP: &str = "/api/v2/applications/my-app";
const GATEWAY: &str = "/api/v2/gateways/my-gateway";

/// Asks about a token both ways, and returns the rights, or else the status.
async fn rights(service: &Service, path: &str, bearer: &str) -> Result<Value, u16> {
    let response = service.get(&format!("{path}/rights"), bearer).await;
    let expected = if response.status == 200 { Ok(response.json()) } else { Err(response.status.as_u16()) };
    let token = Secret::new(bearer.trim_start_matches("Bearer "));
    let here = match path {
        APP => service.account.application_rights(&token, &app_id()).await.map(|rights| json!(rights)),
        _ => service.account.gateway_rights(&token, &gateway_id()).await.map(|rights| json!(rights)),
    };
    let here = here.map_err(|error| server::status::http(error.kind()).as_u16());
    assert_eq!(here, expected, "{path}");
    here
}

/// Asks about an access key both ways, and returns the rights in its claims.
async fn rights_of_key(service: &Service, key: &str) -> Option<Value> {
    let body = json!({"username": "my-app", "password": key});
    let exchanged = service.post("/applications/token", "", body).await;
    let here = service.account.key_claims(&app_id(), &key.parse::<AccessKey>().unwrap()).await;
    let mut here = match here {
        Ok(claims) => serde_json::to_value(claims).unwrap(),
        Err(error) => {
            assert_eq!((error.kind(), exchanged.status.as_u16()), (Kind::Unauthenticated, 401));
            return None;
        }
    };
    let mut elsewhere = part(exchanged.json()["access_token"].as_str().unwrap(), 1);
    // Each token has an id of its own, which starts with that of the key.
    let ids = [&mut here, &mut elsewhere].map(|claims| claims["jti"].take().as_str().unwrap().to_owned());
    assert_eq!(ids[0].split('-').next(), ids[1].split('-').next());
    assert_eq!(here, elsewhere);
    Some(here["apps"]["my-app"].take())
}

fn app_id() -> AppId {
    "my-app".parse().unwrap()
}

fn gateway_id() -> GatewayId {
    "my-gateway".parse().unwrap()
}

#[tokio::test]
async fn a_token_has_the_same_rights() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        let mine = service.application(&alice, "my-app").await;
        let other = service.application(&bob, "other-app").await;
        let gateway = service.gateway(&alice, "my-gateway").await;
        assert_eq!(rights(&service, APP, &mine).await.unwrap().as_array().unwrap().len(), 7);
        assert!(rights(&service, GATEWAY, &gateway).await.is_ok());
        for stranger in [&alice, &other, &gateway, "Bearer x.y.z"] {
            assert!(rights(&service, APP, stranger).await.is_err(), "{stranger}");
        }
        for stranger in [&alice, &other, &mine] {
            assert!(rights(&service, GATEWAY, stranger).await.is_err(), "{stranger}");
        }
        assert_eq!(service.call("DELETE", APP, &mine, Value::Null).await.status, 204);
        assert_eq!(rights(&service, APP, &mine).await, Err(404));
        let change = json!({"password": "a new password", "old_password": PASSWORD});
        assert_eq!(service.call("PATCH", "/api/v2/users/me", &bob, change).await.status, 204);
        assert_eq!(rights(&service, "/api/v2/applications/my-app", &other).await, Err(401), "the login has ended");
        service.pass(7200);
        assert_eq!(rights(&service, GATEWAY, &gateway).await, Err(401), "it has expired");
    }
}

#[tokio::test]
async fn refusals_are_in_the_audit_log_and_cannot_fill_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let (service, audit) = Service::start_audited(&path).await;
    let key: AccessKey = "airlock-account.wrong".parse().unwrap();
    let refused = async |number: usize| {
        let app_id: AppId = format!("app-{number}").parse().unwrap();
        service.account.key_claims(&app_id, &key).await.unwrap_err();
    };
    refused(0).await;
    service.get("/api/v2/users/me", "Bearer wrong").await;
    // After the first events, because `tracing` caches for each event whether any thread wants it.
    let _here = record_here(&audit);
    for number in 0..200 {
        refused(number).await;
    }
    service.get("/api/v2/users/me", "Bearer wrong").await;
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.matches("credential refused").count();
    assert!((1..200).contains(&lines), "{lines}");
    assert_eq!(text.matches("request refused").count(), 1, "{text}");
}

#[tokio::test]
async fn a_key_has_the_same_claims_until_it_is_deleted() {
    for service in Service::start_on_each_store().await {
        let mine = service.application(&service.user("alice").await, "my-app").await;
        let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
        assert_eq!(rights_of_key(&service, &key).await, Some(json!(["messages:up:r"])));
        let exchanged = service.post("/applications/token", "", json!({"username": "my-app", "password": key})).await;
        let token = format!("Bearer {}", exchanged.json()["access_token"].as_str().unwrap());
        assert_eq!(rights(&service, APP, &token).await, Ok(json!(["messages:up:r"])));
        assert_eq!(rights_of_key(&service, "airlock-account.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").await, None);
        assert_eq!(service.call("DELETE", &format!("{APP}/access-keys/reader"), &mine, Value::Null).await.status, 204);
        assert_eq!(rights_of_key(&service, &key).await, None);
        assert_eq!(rights(&service, APP, &token).await, Err(401));
    }
}
