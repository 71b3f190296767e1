//! Exchanges of tokens and access keys for tokens.

use std::time::Duration;

use serde_json::{Value, json};
use types::ServiceName;

use crate::{
    oauth::authorize::{APP, changed, code, of_app, redeem, session, with_app},
    service::{PASSWORD, Service, bearer, send},
};

// Conformance: POST /users/restrict-token
#[tokio::test]
async fn a_restricted_token_has_only_the_users_rights() {
    let service = Service::start().await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    let mine = service.application(&alice, "my-app").await;
    service.application(&bob, "his-app").await;
    let narrow = service.login("alice", PASSWORD, json!(["profile"])).await;
    let narrow = bearer(&narrow.json()["access_token"]);
    let eleven: Vec<_> = (0..11).map(|number| format!("apps:app-{number}")).collect();
    let cases = [
        (&alice, json!(["apps:my-app", "apps:my-app"]), 200),
        (&alice, json!(["apps"]), 200),
        (&alice, json!(["apps:his-app"]), 403),
        (&alice, json!(["apps:no-app"]), 403),
        (&alice, json!(["apps:my-app", "apps:his-app"]), 403),
        (&alice, json!(["gateways:any"]), 403),
        (&alice, json!(eleven), 400),
        (&alice, json!([]), 400),
        (&alice, json!("apps"), 400),
        (&alice, json!(["everything"]), 400),
        (&mine, json!(["apps:my-app"]), 403),
        (&narrow, json!(["apps:my-app"]), 403),
    ];
    for (authorization, scope, status) in cases {
        let response = service.post("/users/restrict-token", authorization, json!({ "scope": scope })).await;
        assert_eq!(response.status, status, "{scope}: {response:?}");
    }
    let foreign = service.post("/users/restrict-token", &alice, json!({"scope": ["apps:his-app"]})).await;
    let unknown = service.post("/users/restrict-token", &alice, json!({"scope": ["apps:xyz-app"]})).await;
    assert_eq!(foreign.text.replace("his-app", "xyz-app"), unknown.text);
}

// Conformance: Scopes and rights for components
// Conformance: `apps`, `gateways`, `components`: rights to the entities in the scope
// Conformance: At most 10 entities in a token
// Conformance: 10 entities in a token
#[tokio::test]
async fn a_token_names_up_to_ten_entities_of_any_kind() {
    for service in Service::start_on_each_store().await {
        let alice = service.user("alice").await;
        service.application(&alice, "an-app").await;
        service.handler(&alice, "a-handler").await;
        let mut scope = vec!["apps".to_owned(), "apps:an-app".to_owned(), "components:a-handler".to_owned()];
        for number in 0..8 {
            service.gateway(&alice, &format!("gw-{number}")).await;
            scope.push(format!("gateways:gw-{number}"));
        }
        let scope: Vec<_> = scope.iter().map(String::as_str).collect();
        let all = service.restrict(&alice, &scope).await;
        for path in ["applications", "applications/an-app", "gateways/gw-7/rights", "components/handlers/a-handler"] {
            assert_eq!(service.get(&format!("/api/v2/{path}"), &all).await.status, 200, "{path}");
        }
        assert_eq!(service.get("/api/v2/gateways", &all).await.status, 403, "not asked for");
        service.gateway(&alice, "gw-8").await;
        let eleven = [&scope[..], &["gateways:gw-8"]].concat();
        let response = service.post("/users/restrict-token", &alice, json!({ "scope": eleven })).await;
        assert_eq!(response.error().0, 400);
    }
}

// Conformance: `interchangeable`
// Conformance: `restrict-token` needs `interchangeable`
#[tokio::test]
async fn an_exchange_never_grants_more_than_the_token() {
    let service = Service::start().await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    let hers = service.application(&alice, "an-app").await;
    let path = "/api/v2/applications/an-app/collaborators/bob";
    let give = async |rights: Value| assert_eq!(service.call("PUT", path, &hers, rights).await.status, 201);
    give(json!(["devices"])).await;
    let old = service.login("bob", PASSWORD, json!(["apps:an-app"])).await.json();
    let old = bearer(&old["access_token"]);
    give(json!(["devices", "settings"])).await;
    let rights = async |authorization: &str| {
        let restricted = service.restrict(authorization, &["apps:an-app"]).await;
        service.get("/applications/an-app/rights", &restricted).await.json()
    };
    assert_eq!(rights(&old).await, json!(["devices"]), "what it says of an application is the most");
    assert_eq!(rights(&bob).await, json!(["settings", "devices"]), "the general one says nothing of it");
    give(json!(["settings"])).await;
    assert_eq!(rights(&bob).await, json!(["settings"]));
    for scope in ["apps", "gateways", "profile"] {
        let response = service.post("/users/restrict-token", &old, json!({"scope": [scope]})).await;
        assert_eq!(response.error().0, 403, "{scope}");
    }
}

#[tokio::test]
async fn an_exchange_never_grants_more_than_the_users_consent() {
    let service = Service::start_with(with_app()).await;
    let alice = service.user("alice").await;
    for app_id in ["app-a", "app-b"] {
        service.application(&alice, app_id).await;
    }
    let cookie = session(&service, "alice").await;
    let log_in = async |scope: &'static str| {
        let code = code(&service, &cookie, &changed(&of_app(), "scope", Some(scope))).await;
        let response = redeem(&service, ("app", "app-secret"), &[("code", &code), ("redirect_uri", APP)]).await;
        bearer(&response.json()["access_token"])
    };
    let exchange = async |authorization: &str, scope: &str| {
        service.post("/users/restrict-token", authorization, json!({"scope": [scope]})).await.status.as_u16()
    };
    let narrow = log_in("apps:app-a").await;
    assert_eq!((exchange(&narrow, "apps:app-a").await, exchange(&narrow, "apps:app-b").await), (200, 403));
    let both = log_in("apps:app-b").await;
    assert_eq!((exchange(&both, "apps:app-a").await, exchange(&both, "apps:app-b").await), (200, 200));
    let own = bearer(&service.login("alice", PASSWORD, json!(["apps:app-a"])).await.json()["access_token"]);
    assert_eq!(exchange(&own, "apps:app-b").await, 200, "who uses a program of the operator's is not asked");
}

// Conformance: POST /applications/{app_id}/token
// Conformance: POST /applications/token
#[tokio::test]
async fn a_key_is_exchanged_at_every_path_and_in_every_encoding() {
    let service = Service::start().await;
    let mine = service.application(&service.user("alice").await, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    let body = json!({"username": "my-app", "password": key});
    let token = service.account.component_token(ServiceName::Handler, &"h1".parse().unwrap()).await.unwrap();
    let post = |path: &str| service.request("POST", path, "");
    let requests = [
        post("/api/v2/applications/token").json(&body),
        post("/applications/token").json(&body),
        post("/api/v2/applications/token").form(&body),
        post("/api/v2/applications/token").header("content-type", "text/plain; charset=utf-8").body(body.to_string()),
        post("/api/v2/applications/token").basic_auth("ttnctl", Some("ttnctl")).json(&body),
        post("/api/v2/applications/token").bearer_auth(token.expose()).json(&body),
        post("/api/v2/applications/my-app/token").json(&json!({"password": key})),
    ];
    for request in requests {
        let response = send(request).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.headers["cache-control"], "no-store");
    }
}

#[tokio::test]
async fn the_response_tells_a_wrong_key_from_a_component_that_is_not_accepted() {
    let service = Service::start().await;
    let mine = service.application(&service.user("alice").await, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    let component = service.account.component_token(ServiceName::Handler, &"ours".parse().unwrap()).await.unwrap();
    let component = format!("Bearer {}", component.expose());
    let exchange = async |authorization: &str, key: &str| {
        let body = json!({"username": "my-app", "password": key});
        let response = service.post("/api/v2/applications/token", authorization, body).await;
        (response.status.as_u16(), response.headers.contains_key("www-authenticate"))
    };
    let wrong = "airlock-account.wrong";
    assert_eq!(exchange(&component, &key).await, (200, false));
    assert_eq!(exchange(&component, wrong).await, (401, false), "the key is wrong");
    assert_eq!(exchange("", wrong).await, (401, false));
    // The clock is set back, and the token is early: it is the component that is not accepted.
    service.clock.set_back(Duration::from_secs(300));
    assert_eq!(exchange(&component, &key).await, (401, true));
    assert_eq!(exchange("Bearer none", wrong).await, (401, true));
    let client = service.request("POST", "/api/v2/applications/token", "").basic_auth("ttnctl", Some("wrong"));
    let refused = send(client.json(&json!({"username": "my-app", "password": key}))).await;
    assert!(refused.status == 401 && refused.headers.contains_key("www-authenticate"));
}

// Conformance: An access key is exchanged for a token of its application with its rights
// Conformance: A refused exchange is `{code: 401, description}`
#[tokio::test]
async fn every_invalid_key_gets_the_same_error() {
    let service = Service::start().await;
    let alice = service.user("alice").await;
    let mine = service.application(&alice, "my-app").await;
    service.application(&alice, "other-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    let gone = service.application(&alice, "gone-app").await;
    let of_gone = service.key(&gone, "gone-app", "reader", &["messages:up:r"]).await;
    assert_eq!(service.call("DELETE", "/api/v2/applications/gone-app", &gone, Value::Null).await.status, 204);
    let cases = [
        ("other-app", key.as_str()),
        ("no-app", key.as_str()),
        ("NOT AN ID", key.as_str()),
        ("my-app", "airlock-account.wrong"),
        ("my-app", "no dot"),
        ("gone-app", of_gone.as_str()),
    ];
    for (username, password) in cases {
        let body = json!({"username": username, "password": password});
        let response = service.post("/api/v2/applications/token", "", body).await;
        let text = "access key not valid for this application: it may be mistyped, deleted, or of another application";
        assert_eq!(response.json(), json!({"code": 401, "error": text, "description": text}), "{username}");
    }
    let wrong_client = service.request("POST", "/api/v2/applications/token", "").basic_auth("ttnctl", Some("wrong"));
    let body = json!({"username": "my-app", "password": key});
    assert_eq!(send(wrong_client.json(&body)).await.json()["code"], 401);
    assert_eq!(service.post("/api/v2/applications/token", &alice, body).await.error().0, 403);
}

#[tokio::test]
async fn client_credentials_beside_a_key_must_be_valid_in_the_body_too() {
    let service = Service::start().await;
    let mine = service.application(&service.user("alice").await, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    for (client, status) in [
        (json!({}), 200),
        (json!({"client_id": "ttnctl", "client_secret": "ttnctl"}), 200),
        (json!({"client_id": "nobody", "client_secret": "wrong"}), 401),
        (json!({"client_id": "ttnctl", "client_secret": "wrong"}), 401),
        (json!({"client_secret": "ttnctl"}), 401),
    ] {
        for path in ["/applications/token", "/api/v2/applications/my-app/token"] {
            let mut body = json!({"username": "my-app", "password": key});
            body.as_object_mut().unwrap().extend(client.as_object().unwrap().clone());
            assert_eq!(service.post(path, "", body).await.status, status, "{path} {client}");
        }
    }
}
