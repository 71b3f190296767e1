//! Refresh tokens: each valid once, and the effects of a refused one.

use serde_json::{Value, json};

use crate::service::{PASSWORD, Service, TestResponse, send};

#[tokio::test]
async fn a_refresh_token_rotates_and_reuse_revokes_the_grant() {
    for service in Service::start_on_each_store().await {
        service.user("alice").await;
        let first = service.login("alice", PASSWORD, Value::Null).await.json()["refresh_token"].clone();
        assert_eq!(first.as_str().unwrap().len(), 43);
        let second = refresh(&service, &first).await.unwrap();
        assert_ne!(first, second);
        service.pass(10);
        assert_eq!(refresh(&service, &first).await.unwrap(), second, "a retry gets the same response");
        let third = refresh(&service, &second).await.unwrap();
        service.pass(11);
        assert_eq!(refresh(&service, &second).await, Err((400, "invalid_grant".to_owned())));
        assert_eq!(refresh(&service, &third).await, Err((400, "invalid_grant".to_owned())), "the grant is over");
    }
}

#[tokio::test]
async fn a_refresh_token_is_valid_for_its_client_for_90_days() {
    let service = Service::start().await;
    service.user("alice").await;
    let token = service.login("alice", PASSWORD, Value::Null).await.json()["refresh_token"].clone();
    let body = json!({"grant_type": "refresh_token", "refresh_token": token, "client_id": "airlock"});
    assert_eq!(service.post("/users/token", "", body).await.error().1, "invalid_grant");
    for forged in [json!(""), json!("A".repeat(43)), json!(format!("{}A", token.as_str().unwrap()))] {
        assert_eq!(refresh(&service, &forged).await, Err((400, "invalid_grant".to_owned())));
    }
    service.pass(90 * 24 * 3600 + 1);
    assert_eq!(refresh(&service, &token).await, Err((400, "invalid_grant".to_owned())));
}

#[tokio::test]
async fn a_refreshed_token_may_have_fewer_scopes_but_not_more() {
    let service = Service::start().await;
    service.user("alice").await;
    let token = service.login("alice", PASSWORD, json!(["profile"])).await.json()["refresh_token"].clone();
    let ask = async |scope: &str| {
        let form = [("grant_type", "refresh_token"), ("refresh_token", token.as_str().unwrap()), ("scope", scope)];
        send(service.request("POST", "/users/token", "").basic_auth("ttnctl", Some("ttnctl")).form(&form)).await
    };
    assert_eq!(ask("profile").await.status, 200);
    assert_eq!(ask("apps").await.error(), (400, "invalid_scope".to_owned()));
}

#[tokio::test]
async fn a_refused_refresh_does_not_use_up_the_token() {
    for service in Service::start_on_each_store().await {
        service.user("bob").await;
        let hers = service.application(&service.user("alice").await, "an-app").await;
        let bob = async |method: &str, rights: Value| {
            let response = service.call(method, "/applications/an-app/collaborators/bob", &hers, rights).await;
            assert!(response.status.is_success(), "{response:?}");
        };
        bob("PUT", json!(["devices"])).await;
        let token = service.login("bob", PASSWORD, json!(["apps:an-app"])).await.json()["refresh_token"].clone();
        let ask = async |scope: Value| refresh_for(&service, &token, scope).await.status.as_u16();
        assert_eq!(ask(json!(["gateways"])).await, 400, "more than was granted");
        assert_eq!(ask(json!(["everything"])).await, 400, "no scope at all");
        bob("DELETE", Value::Null).await;
        assert_eq!(ask(Value::Null).await, 400, "a scope without rights");
        service.pass(11);
        bob("PUT", json!(["devices"])).await;
        assert_eq!(ask(Value::Null).await, 200, "the token was still good");
    }
}

async fn refresh(service: &Service, token: &Value) -> Result<Value, (u16, String)> {
    let response = refresh_for(service, token, Value::Null).await;
    if response.status == 200 { Ok(response.json()["refresh_token"].clone()) } else { Err(response.error()) }
}

async fn refresh_for(service: &Service, token: &Value, scope: Value) -> TestResponse {
    let body = json!({"grant_type": "refresh_token", "refresh_token": token, "scope": scope});
    send(service.request("POST", "/users/token", "").basic_auth("ttnctl", Some("ttnctl")).json(&body)).await
}
