//! The token endpoint.

mod exchanges;

use airlock_account::Settings;
use serde_json::{Value, json};
use types::{Secret, ServiceName};

use crate::service::{PASSWORD, Service, send};

// Conformance: POST /users/token: `password`, `authorization_code`
#[tokio::test]
async fn form_json_basic_and_body_are_equivalent() {
    let service = Service::start().await;
    service.user("alice").await;
    let form = [("grant_type", "password"), ("username", "alice"), ("password", PASSWORD), ("scope", "apps profile")];
    let with_client = [&form[..], &[("client_id", "ttnctl"), ("client_secret", "ttnctl")]].concat();
    let with_id = [&form[..], &[("client_id", "ttnctl")]].concat();
    let public = [&form[..], &[("client_id", "airlock")]].concat();
    let post = || service.request("POST", "/users/token", "");
    let requests = [
        post().basic_auth("ttnctl", Some("ttnctl")).form(&form),
        post().form(&with_client),
        post().basic_auth("airlock", Some("")).form(&form),
        post().form(&public),
        post().json(&object(&with_client)),
        post().basic_auth("ttnctl", Some("ttnctl")).json(&object(&with_id)),
    ];
    for request in requests {
        let response = send(request).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.headers["cache-control"], "no-store");
        let members: Vec<_> = response.json().as_object().unwrap().keys().cloned().collect();
        assert_eq!(members, ["token_type", "access_token", "expires_in", "refresh_token"]);
    }
}

#[tokio::test]
async fn refuses_client_credentials_in_header_and_body_together() {
    let service = Service::start().await;
    let alice = service.user("alice").await;
    let mine = service.application(&alice, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    let handler = service.account.component_token(ServiceName::Handler, &"h1".parse().unwrap()).await.unwrap();
    let body = [
        ("grant_type", "password"),
        ("username", "alice"),
        ("password", PASSWORD),
        ("token", "any"),
        ("client_id", "ttnctl"),
        ("client_secret", "ttnctl"),
    ];
    let exchange = [("username", "my-app"), ("password", &key), ("client_secret", "ttnctl")];
    let post = |path: &str| service.request("POST", path, "");
    let requests = [
        post("/users/token").basic_auth("ttnctl", Some("ttnctl")).form(&body),
        post("/users/token").basic_auth("ttnctl", Some("ttnctl")).json(&object(&body)),
        post("/users/token").basic_auth("airlock", Some("")).form(&body),
        post("/users/revoke").basic_auth("ttnctl", Some("ttnctl")).form(&body),
        post("/applications/token").basic_auth("ttnctl", Some("ttnctl")).form(&exchange),
        post("/api/v2/applications/my-app/token").basic_auth("ttnctl", Some("ttnctl")).json(&object(&exchange)),
        post("/applications/token").bearer_auth(handler.expose()).form(&exchange),
    ];
    for request in requests {
        let response = send(request).await;
        assert_eq!(response.error(), (400, "invalid_request".to_owned()), "{response:?}");
        assert!(response.json()["error_description"].as_str().unwrap().contains("client_secret"), "{response:?}");
    }
}

#[tokio::test]
async fn refuses_a_client_secret_that_is_longer_than_any_before_checking_it() {
    let service = Service::start().await;
    let long = "x".repeat(types::CREDENTIAL_BYTES_MAX + 1);
    let post = || service.request("POST", "/users/token", "");
    for request in [
        post().basic_auth("ttnctl", Some(&long)).form(&[("grant_type", "password")]),
        post().form(&[("grant_type", "password"), ("client_id", "ttnctl"), ("client_secret", &long)]),
    ] {
        let answer = send(request).await;
        assert_eq!(answer.status, 400, "a wrong secret gets 401: {answer:?}");
        assert!(answer.text.contains("at most 16384"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_basic_secret_may_be_plain_or_form_encoded() {
    let mut settings = Settings::default();
    let mut client = settings.clients["ttnctl"].clone();
    client.secret = Some(Secret::new("two words+50%3A:"));
    settings.clients.insert("odd".parse().unwrap(), client);
    let service = Service::start_with(settings).await;
    service.user("alice").await;
    let form = [("grant_type", "password"), ("username", "alice"), ("password", PASSWORD)];
    let cases = [
        ("two words+50%3A:", 200),
        ("two+words%2B50%253A%3A", 200),
        ("two words 50::", 401),
        ("two+words%2B50::", 401),
    ];
    for (secret, status) in cases {
        let request = service.request("POST", "/users/token", "").basic_auth("odd", Some(secret));
        assert_eq!(send(request.form(&form)).await.status, status, "{secret}");
    }
}

#[tokio::test]
async fn refuses_invalid_requests_with_oauth_error_codes() {
    let mut settings = Settings::default();
    let mut no_codes = settings.clients["airlock"].clone();
    (no_codes.first_party, no_codes.redirect_uris) = (false, Vec::new());
    settings.clients.insert("no-codes".parse().unwrap(), no_codes);
    let service = Service::start_with(settings).await;
    service.user("alice").await;
    let good = json!({"grant_type": "password", "username": "alice", "password": PASSWORD});
    let with = |member: &str, value: Value| {
        let mut body = good.clone();
        body[member] = value;
        body
    };
    let cases = [
        (("ttnctl", "wrong"), good.clone(), 401, "invalid_client"),
        (("nobody", "ttnctl"), good.clone(), 401, "invalid_client"),
        (("NOT AN ID", ""), good.clone(), 401, "invalid_client"),
        (("airlock", "not public"), good.clone(), 401, "invalid_client"),
        (("ttnctl", "ttnctl"), with("client_id", json!("airlock")), 401, "invalid_client"),
        (("ttnctl", "ttnctl"), with("grant_type", Value::Null), 400, "invalid_request"),
        (("ttnctl", "ttnctl"), with("grant_type", json!("magic")), 400, "unsupported_grant_type"),
        (("no-codes", ""), with("grant_type", json!("authorization_code")), 400, "unauthorized_client"),
        (("no-codes", ""), good.clone(), 400, "unauthorized_client"),
        (("ttnctl", "ttnctl"), with("password", json!("wrong password")), 400, "invalid_grant"),
        (("ttnctl", "ttnctl"), with("password", json!("x".repeat(10_000))), 400, "invalid_grant"),
        (("ttnctl", "ttnctl"), with("username", json!("nobody")), 400, "invalid_grant"),
        (("ttnctl", "ttnctl"), with("username", Value::Null), 400, "invalid_request"),
        (("ttnctl", "ttnctl"), with("scope", json!(["everything"])), 400, "invalid_scope"),
        (("ttnctl", "ttnctl"), with("scope", json!(["apps:not-mine"])), 400, "invalid_scope"),
        (("ttnctl", "ttnctl"), with("scope", json!(["gateways:any"])), 400, "invalid_scope"),
    ];
    for ((id, secret), body, status, word) in cases {
        let response = send(service.request("POST", "/users/token", "").basic_auth(id, Some(secret)).json(&body)).await;
        assert_eq!(response.error(), (status, word.to_owned()), "{id} {body}");
        assert!(!response.json()["error_description"].as_str().unwrap().is_empty());
        assert_eq!(response.headers.contains_key("www-authenticate"), status == 401);
    }
}

#[tokio::test]
async fn refuses_malformed_requests_and_ignores_the_query() {
    let service = Service::start().await;
    service.user("alice").await;
    let query = format!("grant_type=password&username=alice&password={}", PASSWORD.replace(' ', "+"));
    let path = format!("/users/token?{query}");
    let post = |path: &str| service.request("POST", path, "").basic_auth("ttnctl", Some("ttnctl"));
    let form = "application/x-www-form-urlencoded";
    let cases = [
        ("a password in the address", post(&path), 415),
        ("an empty form, and a password in the address", post(&path).header("content-type", form), 400),
        ("XML", post("/users/token").header("content-type", "application/xml").body("<password/>"), 415),
        ("no sort at all", post("/users/token").body(query.clone()), 415),
        (
            "twice the same",
            post("/users/token").header("content-type", form).body(format!("{query}&username=bob")),
            400,
        ),
        ("a GET", service.request("GET", &path, ""), 405),
    ];
    for (what, request, status) in cases {
        let response = send(request).await;
        assert_eq!(response.status, status, "{what}: {response:?}");
        assert!(!response.text.contains("access_token") && !response.text.contains("correct"), "{what}: {response:?}");
    }
}

#[tokio::test]
async fn an_unknown_user_gets_the_error_of_a_wrong_password() {
    let service = Service::start().await;
    service.user("alice").await;
    let wrong = service.login("alice", "wrong password", Value::Null).await;
    let unknown = service.login("nobody", "wrong password", Value::Null).await;
    assert_eq!((wrong.status, wrong.text), (unknown.status, unknown.text));
}

#[tokio::test]
async fn the_password_grant_can_be_disabled() {
    let service = Service::start_with(Settings { password_grant: false, ..Settings::default() }).await;
    let body = json!({"username": "alice", "email": "alice@example.com", "password": PASSWORD});
    assert_eq!(service.post("/api/v2/users", "", body).await.status, 201);
    let response = service.login("alice", PASSWORD, Value::Null).await;
    assert_eq!(response.error(), (400, "unauthorized_client".to_owned()));
}

// Conformance: A scope that the client lacks: 400
// Conformance: 400: an invalid gateway or collaborator, a scope that the client lacks
#[tokio::test]
async fn a_client_gets_no_scope_that_it_lacks() {
    let mut settings = Settings::default();
    let narrow = settings.clients.get_mut("ttnctl").unwrap();
    narrow.scope.retain(|scope| scope.to_string() == "profile");
    let service = Service::start_with(settings).await;
    let general = service.user("alice").await;
    let response = service.login("alice", PASSWORD, json!(["apps"])).await;
    assert_eq!(response.error(), (400, "invalid_scope".to_owned()));
    assert_eq!(service.get("/api/v2/applications", &general).await.error().0, 403);
}

fn object(members: &[(&str, &str)]) -> Value {
    members.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into()
}
