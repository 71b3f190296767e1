//! Claims of tokens, one by one: v2 clients parse them strictly.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use types::ServiceName;

use crate::service::{PASSWORD, Service};

/// The head (0) or the claims (1) of a token.
pub(crate) fn part(token: &str, which: usize) -> Value {
    let token = token.trim_start_matches("Bearer ");
    let part = token.split('.').nth(which).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

// Conformance: `sub`, `client`, `scope`: always
// Conformance: `username`, `email`, `created`, `name`, `valid`: with the scope `profile`
// Conformance: `interchangeable`
#[tokio::test]
async fn a_general_token_has_scopes_and_the_profile_but_no_entity() {
    let service = Service::start().await;
    let token = service.user("alice").await;
    let user = service.get("/api/v2/users/me", &token).await.json();
    let now = service.now_seconds();
    let expected = json!({
        "iss": "airlock-account", "sub": user["_id"], "type": "user", "iat": now - 60, "exp": now + 3600,
        "client": "ttnctl", "scope": ["profile", "apps", "gateways", "components", "clients"],
        "interchangeable": true, "username": "alice", "email": "alice@example.com",
        "created": "2026-01-01T00:00:00.000Z", "name": {}, "valid": false,
    });
    assert_eq!(part(&token, 1), expected);
    let header = part(&token, 0);
    assert_eq!((&header["alg"], &header["typ"]), (&json!("ES256"), &json!("JWT")));
    let jwks = service.get("/.well-known/jwks.json", "").await.json();
    assert_eq!(jwks["keys"][0]["kid"], header["kid"]);
}

// Conformance: `apps`, `gateways`, `components`: rights to the entities in the scope
#[tokio::test]
async fn a_restricted_token_names_one_application_and_expires_with_the_original() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    service.application(&general, "my-app").await;
    service.pass(600);
    let token = service.restrict(&general, &["apps:my-app"]).await;
    let now = service.now_seconds();
    let expected = json!({
        "iss": "airlock-account", "sub": part(&general, 1)["sub"], "type": "user", "iat": now - 60,
        "exp": now + 3000, "client": "ttnctl", "scope": ["apps:my-app"], "interchangeable": false,
        "apps": {"my-app": [
            "settings", "delete", "collaborators", "messages:up:r", "messages:up:w", "messages:down:w", "devices",
        ]},
    });
    assert_eq!(part(&token, 1), expected);
}

// Conformance: An access key is exchanged for a token of its application with its rights
#[tokio::test]
async fn a_token_of_a_key_has_the_rights_of_the_key() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let mine = service.application(&general, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    let body = json!({"username": "my-app", "password": key, "grant_type": "password"});
    let response = service.post("/api/v2/applications/token", "", body).await.json();
    let members: Vec<_> = response.as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, ["access_token", "expires_in"]);
    let claims = part(response["access_token"].as_str().unwrap(), 1);
    let now = service.now_seconds();
    let expected = json!({
        "iss": "airlock-account", "sub": "my-app", "type": "application", "iat": now - 60, "exp": now + 3600,
        "jti": claims["jti"], "scope": ["apps:my-app"], "interchangeable": false,
        "apps": {"my-app": ["messages:up:r"]},
    });
    assert_eq!(claims, expected);
}

#[tokio::test]
async fn a_component_token_names_its_service_and_is_valid_for_93_days() {
    let service = Service::start().await;
    let id = "handler-1".parse().unwrap();
    let token = service.account.component_token(ServiceName::Handler, &id).await.unwrap();
    let now = service.now_seconds();
    let claims = part(token.expose(), 1);
    assert_eq!((&claims["sub"], &claims["type"]), (&json!("handler-1"), &json!("handler")));
    assert_eq!((&claims["iat"], &claims["exp"]), (&json!(now - 60), &json!(now + 8_035_200)));
    assert_eq!(claims["scope"], json!([]));
}

// Conformance: GET /key
#[tokio::test]
async fn the_published_key_verifies_tokens() {
    use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};

    let service = Service::start().await;
    let token = service.user("alice").await;
    let document = service.get("/key", "").await.json();
    assert_eq!(document["algorithm"], "ES256");
    let key = DecodingKey::from_ec_pem(document["key"].as_str().unwrap().as_bytes()).unwrap();
    let mut rules = Validation::new(Algorithm::ES256);
    rules.validate_exp = false;
    assert!(decode::<Value>(token.trim_start_matches("Bearer "), &key, &rules).is_ok());
}

// Conformance: `apps`, `gateways`, `components`: rights to the entities in the scope
// Conformance: The password grant, with and without `scope`
#[tokio::test]
async fn a_login_with_entities_gets_their_rights_at_once() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    service.application(&general, "my-app").await;
    for scope in [json!(["apps", "apps:my-app"]), json!("apps apps:my-app")] {
        let response = service.login("alice", PASSWORD, scope).await.json();
        let claims = part(response["access_token"].as_str().unwrap(), 1);
        assert_eq!(claims["scope"], json!(["apps", "apps:my-app"]));
        assert_eq!(claims["apps"]["my-app"][0], "settings");
        assert_eq!(claims.get("username"), None, "without the scope profile there is no profile");
    }
}

// Conformance: The password grant, with and without `scope`
#[tokio::test]
async fn a_token_asked_for_without_scope_names_all_entities_unless_they_are_too_many() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let bob = service.user("bob").await;
        let hers = service.application(&general, "my-app").await;
        service.gateway(&general, "my-gw").await;
        let shared = service.application(&bob, "shared-app").await;
        let share = "/api/v2/applications/shared-app/collaborators/alice";
        assert_eq!(service.call("PUT", share, &shared, json!(["devices"])).await.status, 201);
        service.application(&general, "deleted-app").await;
        let deleted = service.restrict(&general, &["apps:deleted-app"]).await;
        assert_eq!(service.call("DELETE", "/api/v2/applications/deleted-app", &deleted, Value::Null).await.status, 204);
        let login =
            json!({"grant_type": "password", "username": "alice", "password": PASSWORD, "client_id": "airlock"});
        let answer = service.post("/users/token", "", login.clone()).await.json();
        let refresh =
            json!({"grant_type": "refresh_token", "refresh_token": answer["refresh_token"], "client_id": "airlock"});
        let refreshed = service.post("/users/token", "", refresh).await.json();
        for answer in [&answer, &refreshed] {
            let token = answer["access_token"].as_str().unwrap();
            let claims = part(token, 1);
            assert_eq!(claims["apps"]["shared-app"], json!(["devices"]), "{claims}");
            let named: Vec<_> = claims["apps"].as_object().unwrap().keys().collect();
            assert_eq!(named, ["my-app", "shared-app"]);
            assert!(claims["gateways"]["my-gw"].is_array(), "{claims}");
            let bearer = format!("Bearer {token}");
            assert_eq!(service.get("/api/v2/applications/my-app", &bearer).await.status, 200);
            assert_eq!(service.get("/api/v2/applications", &bearer).await.status, 200);
        }
        drop(hers);
        for number in 0..8 {
            service.application(&general, &format!("app-{number}")).await;
        }
        let claims = part(service.post("/users/token", "", login).await.json()["access_token"].as_str().unwrap(), 1);
        assert!(claims.get("apps").is_none() && claims.get("gateways").is_none(), "eleven are too many: {claims}");
    }
}

#[tokio::test]
async fn the_operators_handler_gets_tokens_for_the_devices_of_applications() {
    for service in Service::start_on_each_store().await {
        let alice = service.user("alice").await;
        service.application(&alice, "my-app").await;
        let ours = service.account.component_token(ServiceName::Handler, &"ours".parse().unwrap()).await.unwrap();
        let ours = format!("Bearer {}", ours.expose());
        let restricted = service.restrict(&ours, &["apps:my-app"]).await;
        let claims = part(&restricted, 1);
        assert_eq!((&claims["sub"], &claims["type"]), (&json!("ours"), &json!("handler")));
        assert_eq!((&claims["apps"], &claims["scope"]), (&json!({"my-app": ["devices"]}), &json!(["apps:my-app"])));
        assert_eq!(claims["exp"], service.now_seconds() + 3600);
        let theirs = service.handler(&alice, "her-handler").await;
        let theirs = service.get("/api/v2/components/handlers/her-handler/token", &theirs).await.json();
        let theirs = format!("Bearer {}", theirs["token"].as_str().unwrap());
        for (token, scope, status) in [
            (&ours, "apps:no-app", 404),
            (&ours, "gateways:gw", 403),
            (&ours, "apps", 403),
            (&theirs, "apps:my-app", 403),
        ] {
            let answer = service.post("/users/restrict-token", token, json!({"scope": [scope]})).await;
            assert_eq!(answer.error().0, status, "{scope}");
        }
        // It says something to network servers only, which do not become the handler with it.
        for path in ["applications/my-app/access-keys", "applications/my-app/owner", "components/handlers/ours/token"] {
            assert_eq!(service.get(&format!("/api/v2/{path}"), &restricted).await.status, 403, "{path}");
        }
        let again = service.post("/users/restrict-token", &restricted, json!({"scope": ["apps:my-app"]})).await;
        assert_eq!(again.error().0, 403);
    }
}
