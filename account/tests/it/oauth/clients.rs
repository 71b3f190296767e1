//! OAuth clients that users register and the operator approves.

use serde_json::{Value, json};

use crate::{
    oauth::authorize::{code, redeem, session},
    service::{Service, send},
};

const PATH: &str = "/api/v2/clients/my-client";

fn new(name: &str) -> Value {
    json!({
        "name": name, "description": "Shows maps", "uri": "https://example.com/callback", "scope": ["profile", "apps"],
        "grants": ["authorization_code", "refresh_token"], "secret": "mine", "accepted": true, "rejected": false,
        "official": true,
    })
}

async fn ask(service: &Service, secret: &str, grant: &str) -> (u16, String) {
    let form = [("grant_type", grant), ("refresh_token", "x"), ("username", "alice"), ("password", "x")];
    send(service.request("POST", "/users/token", "").basic_auth("my-client", Some(secret)).form(&form)).await.error()
}

// Conformance: Clients are registered with the operator
#[tokio::test]
async fn a_client_awaits_approval_and_keeps_its_secret() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let response = service.post("/api/v2/clients", &general, new("my-client")).await;
        let secret = response.json()["secret"].clone();
        let mut expected = new("my-client");
        for (member, value) in [("secret", secret.clone()), ("accepted", json!(false)), ("official", json!(false))] {
            expected[member] = value;
        }
        assert_eq!((response.status.as_u16(), response.json()), (201, expected.clone()));
        assert_eq!(secret.as_str().unwrap().len(), 43);
        assert_eq!(service.get(PATH, &general).await.json(), expected);
        assert_eq!(service.get("/api/v2/clients", &general).await.json(), json!([expected]));

        let undecided = service.account.clients_undecided().await.unwrap();
        assert!(undecided.len() == 1 && undecided[0].secret.is_none(), "{undecided:?}");
        let secret = secret.as_str().unwrap();
        assert_eq!(ask(&service, secret, "refresh_token").await, (400, "unauthorized_client".to_owned()));
        let id = "my-client".parse().unwrap();
        service.account.approve_client(&id).await.unwrap();
        assert!(service.account.clients_undecided().await.unwrap().is_empty());
        assert_eq!(ask(&service, secret, "refresh_token").await, (400, "invalid_grant".to_owned()));
        assert_eq!(ask(&service, "wrong", "refresh_token").await, (401, "invalid_client".to_owned()));
        assert_eq!(ask(&service, secret, "password").await, (400, "unauthorized_client".to_owned()));
        assert_eq!(service.get(PATH, &general).await.json()["accepted"], true);
        service.account.reject_client(&id).await.unwrap();
        assert_eq!(ask(&service, secret, "refresh_token").await, (400, "unauthorized_client".to_owned()));
        assert_eq!(service.get(PATH, &general).await.json()["rejected"], true);
    }
}

#[tokio::test]
async fn an_approved_client_gets_codes_and_a_rejected_one_does_not() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let secret = service.post("/api/v2/clients", &general, new("my-client")).await.json()["secret"].clone();
        let secret = secret.as_str().unwrap();
        let uri = "https://example.com/callback";
        let request = vec![("client_id", "my-client"), ("redirect_uri", uri), ("response_type", "code")];
        let cookie = session(&service, "alice").await;
        let asks = async || {
            let path = format!("/users/authorize?client_id=my-client&redirect_uri={uri}&response_type=code");
            send(service.request("GET", &path, "").header("cookie", &cookie)).await.status.as_u16()
        };
        assert_eq!(asks().await, 400, "it waits for the operator");
        let id = "my-client".parse().unwrap();
        service.account.approve_client(&id).await.unwrap();
        let code = code(&service, &cookie, &request).await;
        let response = redeem(&service, ("my-client", secret), &[("code", &code), ("redirect_uri", uri)]).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(asks().await, 303);
        service.account.reject_client(&id).await.unwrap();
        assert_eq!(asks().await, 400);
        assert_eq!(ask(&service, secret, "refresh_token").await, (400, "unauthorized_client".to_owned()));
    }
}

#[tokio::test]
async fn an_approved_client_needs_approval_again_after_a_change() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    service.post("/api/v2/clients", &general, new("my-client")).await;
    let id = "my-client".parse().unwrap();
    let cases = [
        (json!({"description": "Shows better maps"}), true),
        (json!({"secret": "s", "official": true, "rejected": true, "accepted": false}), true),
        (json!({"uri": "https://example.com/other"}), false),
        (json!({"scope": ["profile", "apps", "clients"]}), false),
        (json!({"grants": ["authorization_code"]}), false),
    ];
    for (body, accepted) in cases {
        service.account.approve_client(&id).await.unwrap();
        let mut expected = service.get(PATH, &general).await.json();
        assert_eq!(service.call("PATCH", PATH, &general, body.clone()).await.status, 204);
        for member in ["description", "uri", "scope", "grants"] {
            expected[member] = body.get(member).unwrap_or(&expected[member]).clone();
        }
        expected["accepted"] = json!(accepted);
        assert_eq!(service.get(PATH, &general).await.json(), expected, "{body}");
        assert_eq!(service.account.clients_undecided().await.unwrap().is_empty(), accepted, "{body}");
    }
    let whole = service.get(PATH, &general).await.json();
    assert_eq!(service.call("PATCH", PATH, &general, whole.clone()).await.status, 204);
    assert_eq!(service.get(PATH, &general).await.json(), whole);
}

#[tokio::test]
async fn only_the_owner_sees_and_deletes_a_client() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        let secret = service.post("/api/v2/clients", &alice, new("my-client")).await.json()["secret"].clone();
        service.account.approve_client(&"my-client".parse().unwrap()).await.unwrap();
        assert_eq!(service.post("/api/v2/clients", &bob, new("my-client")).await.error().0, 409);
        assert_eq!(service.post("/api/v2/clients", &bob, new("ttnctl")).await.error().0, 409);
        for (method, body) in [("GET", Value::Null), ("PATCH", json!({"description": ""})), ("DELETE", Value::Null)] {
            let foreign = service.call(method, PATH, &bob, body.clone()).await;
            let unknown = service.call(method, "/api/v2/clients/no-client", &bob, body).await;
            assert_eq!(foreign.error().0, 404);
            assert_eq!(foreign.text.replace("my-client", "no-client"), unknown.text);
        }
        assert_eq!(service.get("/api/v2/clients", &bob).await.json(), json!([]));
        assert_eq!(service.get("/api/v2/clients/ttnctl", &alice).await.error().0, 404, "the operator's is nobody's");

        assert_eq!(service.call("DELETE", PATH, &alice, Value::Null).await.status, 204);
        assert_eq!(service.get(PATH, &alice).await.error().0, 404);
        assert_eq!(service.get("/api/v2/clients", &alice).await.json(), json!([]));
        assert_eq!(ask(&service, secret.as_str().unwrap(), "refresh_token").await.0, 401);
        assert_eq!(service.post("/api/v2/clients", &alice, new("my-client")).await.error().0, 409, "taken for ever");
        assert!(service.account.approve_client(&"my-client".parse().unwrap()).await.is_err());
    }
}

#[tokio::test]
async fn a_user_has_at_most_a_hundred_clients_not_counting_deleted_ones() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let register = async |name: &str| service.post("/api/v2/clients", &general, new(name)).await.status.as_u16();
    for number in 0..100 {
        assert_eq!(register(&format!("client-{number}")).await, 201);
    }
    assert_eq!(register("one-more").await, 403);
    assert_eq!(service.call("DELETE", "/api/v2/clients/client-7", &general, Value::Null).await.status, 204);
    assert_eq!((register("one-more").await, register("two-more").await), (201, 403));
    service.account.remove_client(&"client-8".parse().unwrap()).await.unwrap();
    assert_eq!((register("two-more").await, register("three-more").await), (201, 403));
}

#[tokio::test]
async fn rejects_clients_that_would_harm_users() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let cases = [
        ("uri", json!("http://example.com/callback"), 400),
        ("uri", json!("https://example.com/#fragment"), 400),
        ("uri", json!("https://user@example.com/"), 400),
        ("uri", json!("javascript://example.com/%0aalert(1)"), 400),
        ("uri", json!("data:text/html,x"), 400),
        ("uri", json!("JAVASCRIPT://example.com/"), 400),
        ("uri", json!("http://localhost.example.com/callback"), 400),
        ("uri", json!("http://localhost:80.example.com/"), 400),
        ("uri", json!("https://exa mple.com/"), 400),
        ("uri", json!("https:///callback"), 400),
        ("uri", json!("/callback"), 400),
        ("uri", json!(""), 400),
        ("uri", Value::Null, 400),
        ("scope", json!([]), 400),
        ("scope", json!(["apps:my-app"]), 400),
        ("scope", json!(["everything"]), 400),
        ("grants", json!(["password"]), 400),
        ("grants", json!(["magic"]), 400),
        ("description", json!("a\u{0}b"), 400),
        ("description", json!("x".repeat(1001)), 400),
        ("name", json!("My Client"), 400),
        ("uri", json!("http://localhost:8080/callback"), 201),
        ("uri", json!("http://[::1]/callback"), 201),
        ("uri", json!("ttn://oauth"), 201),
        ("grants", json!([]), 201),
        ("grants", Value::Null, 201),
    ];
    for (number, (member, value, status)) in cases.into_iter().enumerate() {
        let mut body = new(&format!("client-{number}"));
        body[member] = value;
        let response = service.post("/api/v2/clients", &general, body.clone()).await;
        assert_eq!(response.status, status, "{body}: {response:?}");
    }
    assert_eq!(service.get("/api/v2/clients", &general).await.json().as_array().unwrap().len(), 5);
}
