//! Authorization codes: who can redeem them, for how long, and what revokes their tokens.

use serde_json::{Value, json};

use crate::{
    oauth::authorize::{
        APP, CHALLENGE, VERIFIER, authorize, changed, code, location, of_app, redeem, session, with_app,
    },
    service::{PASSWORD, Service, TestResponse, bearer, send},
};

// Conformance: The code is exchanged with Basic credentials and `redirect_uri`
#[tokio::test]
async fn only_the_requesting_client_can_redeem_a_code() {
    let service = Service::start_with(with_app()).await;
    service.user("alice").await;
    let cookie = session(&service, "alice").await;
    let app = ("app", "app-secret");
    let pkce = [of_app(), vec![("code_challenge", CHALLENGE), ("code_challenge_method", "S256")]].concat();
    let wrong = "wrong-wrong-wrong-wrong-wrong-wrong-wrong-wrong";
    let uri = ("redirect_uri", APP);
    let cases = [
        ("everything fits", of_app(), app, vec![uri], "ok"),
        ("a challenge and its verifier", pkce.clone(), app, vec![uri, ("code_verifier", VERIFIER)], "ok"),
        ("no redirect URI", of_app(), app, vec![], "invalid_grant"),
        ("another redirect URI", of_app(), app, vec![("redirect_uri", "https://evil.example")], "invalid_grant"),
        ("another client", of_app(), ("ttnctl", "ttnctl"), vec![uri], "invalid_grant"),
        ("a wrong secret", of_app(), ("app", "wrong"), vec![uri], "invalid_client"),
        ("no verifier", pkce.clone(), app, vec![uri], "invalid_grant"),
        ("a wrong verifier", pkce.clone(), app, vec![uri, ("code_verifier", wrong)], "invalid_grant"),
        ("the challenge as its verifier", pkce.clone(), app, vec![uri, ("code_verifier", CHALLENGE)], "invalid_grant"),
        ("a verifier without a challenge", of_app(), app, vec![uri, ("code_verifier", VERIFIER)], "invalid_grant"),
    ];
    for (what, request, client, form, outcome) in cases {
        let code = code(&service, &cookie, &request).await;
        let form = [&[("code", code.as_str())], &form[..]].concat();
        let response = redeem(&service, client, &form).await;
        match outcome {
            "ok" => assert_eq!(response.status, 200, "{what}: {response:?}"),
            word => assert_eq!(response.error().1, word, "{what}"),
        }
    }
    for garbage in ["", "AAAA", &"A".repeat(38), "<>"] {
        let response = redeem(&service, app, &[("code", garbage), uri]).await;
        assert_eq!(response.error(), (400, "invalid_grant".to_owned()), "{garbage}");
    }
    assert_eq!(redeem(&service, app, &[uri]).await.error().1, "invalid_request");
}

#[tokio::test]
async fn our_command_line_uses_any_loopback_port_and_needs_pkce() {
    let service = Service::start().await;
    service.user("alice").await;
    let cookie = session(&service, "alice").await;
    let uri = "http://127.0.0.1:49152/oauth/callback";
    let request = vec![
        ("client_id", "airlock"),
        ("redirect_uri", uri),
        ("response_type", "code"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    let code = code(&service, &cookie, &request).await;
    let redeem = async |uri: &str, verifier: &str| {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", "airlock"),
            ("code", code.as_str()),
            ("redirect_uri", uri),
            ("code_verifier", verifier),
        ];
        send(service.request("POST", "/users/token", "").form(&form)).await.status.as_u16()
    };
    assert_eq!(redeem("http://127.0.0.1:49153/oauth/callback", VERIFIER).await, 400);
    assert_eq!(redeem(uri, CHALLENGE).await, 400);
    assert_eq!(redeem(uri, VERIFIER).await, 200);
}

#[tokio::test]
async fn a_code_works_once_within_a_minute_and_reuse_revokes_its_grant() {
    for service in Service::start_on_each_store_with(with_app()).await {
        service.user("alice").await;
        let cookie = session(&service, "alice").await;
        let app = ("app", "app-secret");
        let uri = ("redirect_uri", APP);
        let old = code(&service, &cookie, &of_app()).await;
        service.pass(60);
        assert_eq!(redeem(&service, app, &[("code", &old), uri]).await.error().1, "invalid_grant");
        let code = code(&service, &cookie, &of_app()).await;
        service.pass(59);
        let first = redeem(&service, app, &[("code", &code), uri]).await.json();
        let token = bearer(&first["access_token"]);
        assert_eq!(service.get("/api/v2/users/me", &token).await.status, 200);
        assert_eq!(redeem(&service, app, &[("code", &code), uri]).await.error().1, "invalid_grant");
        assert_eq!(service.get("/api/v2/users/me", &token).await.status, 401, "its tokens are over");
        assert_eq!(refresh(&service, &first["refresh_token"]).await.error().1, "invalid_grant");
    }
}

#[tokio::test]
async fn revoking_consent_ends_tokens_at_once_and_asks_again() {
    let service = Service::start_with(with_app()).await;
    let general = service.user("alice").await;
    let cookie = session(&service, "alice").await;
    let uri = ("redirect_uri", APP);
    let [first, unused] = [code(&service, &cookie, &of_app()).await, code(&service, &cookie, &of_app()).await];
    let response = redeem(&service, ("app", "app-secret"), &[("code", &first), uri]).await.json();
    let token = bearer(&response["access_token"]);
    let clients = service.get("/api/v2/users/me/authorized-clients", &general).await.json();
    assert_eq!(clients[0]["name"], "app");
    assert_eq!(clients[0]["scope"], json!(["profile", "apps"]));
    let path = "/api/v2/users/me/authorized-clients/app";
    assert_eq!(service.call("DELETE", path, &general, Value::Null).await.status, 204);
    assert_eq!(service.call("DELETE", path, &general, Value::Null).await.status, 404);
    assert_eq!(service.get("/api/v2/users/me", &token).await.status, 401);
    assert_eq!(service.get("/api/v2/users/me", &general).await.status, 200, "other clients go on");
    assert_eq!(refresh(&service, &response["refresh_token"]).await.error().1, "invalid_grant");
    let late = redeem(&service, ("app", "app-secret"), &[("code", &unused), uri]).await;
    assert_eq!(late.error().1, "invalid_grant", "a code from before is over too");
    assert!(location(&authorize(&service, &cookie, &of_app()).await).starts_with("/users/consent?"));
    let again = code(&service, &cookie, &of_app()).await;
    let response = redeem(&service, ("app", "app-secret"), &[("code", &again), uri]).await.json();
    assert_eq!(service.get("/api/v2/users/me", &bearer(&response["access_token"])).await.status, 200, "at once");
}

#[tokio::test]
async fn a_client_can_revoke_only_its_own_refresh_tokens() {
    let service = Service::start_with(with_app()).await;
    service.user("alice").await;
    let token = service.login("alice", PASSWORD, Value::Null).await.json()["refresh_token"].clone();
    let revoke = async |client: (&str, &str), token: &str| {
        let request = service.request("POST", "/users/revoke", "").basic_auth(client.0, Some(client.1));
        send(request.form(&[("token", token)])).await.status.as_u16()
    };
    let token = token.as_str().unwrap();
    assert_eq!(revoke(("app", "wrong"), token).await, 401);
    assert_eq!(revoke(("app", "app-secret"), token).await, 200);
    assert_eq!(revoke(("app", "app-secret"), "garbage").await, 200);
    let body = json!({"grant_type": "refresh_token", "refresh_token": token});
    let ttnctl = || service.request("POST", "/users/token", "").basic_auth("ttnctl", Some("ttnctl"));
    let next = send(ttnctl().json(&body)).await.json()["refresh_token"].clone();
    assert_eq!(revoke(("ttnctl", "ttnctl"), next.as_str().unwrap()).await, 200);
    let body = json!({"grant_type": "refresh_token", "refresh_token": next});
    assert_eq!(send(ttnctl().json(&body)).await.error().1, "invalid_grant");
}

#[tokio::test]
async fn a_client_works_only_while_approved() {
    let service = Service::start().await;
    let alice = service.user("alice").await;
    let new = json!({"name": "her-app", "uri": APP, "scope": ["profile"], "grants": ["authorization_code"]});
    let registered = service.post("/api/v2/clients", &alice, new).await;
    assert_eq!(registered.status, 201, "{registered:?}");
    let secret = registered.json()["secret"].as_str().unwrap().to_owned();
    let id = "her-app".parse().unwrap();
    let cookie = session(&service, "alice").await;
    let request = changed(&of_app(), "client_id", Some("her-app"));
    assert_eq!(authorize(&service, &cookie, &request).await.status, 400, "it waits");
    service.account.reject_client(&id).await.unwrap();
    assert_eq!(authorize(&service, &cookie, &request).await.status, 400, "it is rejected");
    service.account.approve_client(&id).await.unwrap();
    let [first, second] = [code(&service, &cookie, &request).await, code(&service, &cookie, &request).await];
    let form = |code: &str| [("code", code.to_owned()), ("redirect_uri", APP.to_owned())];
    let redeem = async |code: &str| {
        let form = form(code);
        let form: Vec<_> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
        redeem(&service, ("her-app", &secret), &form).await
    };
    assert_eq!(redeem(&first).await.status, 200);
    assert_eq!(service.call("DELETE", "/api/v2/clients/her-app", &alice, Value::Null).await.status, 204);
    assert_eq!(redeem(&second).await.error(), (401, "invalid_client".to_owned()), "it is gone");
    assert_eq!(authorize(&service, &cookie, &request).await.status, 400);
}

async fn refresh(service: &Service, token: &Value) -> TestResponse {
    let body = json!({"grant_type": "refresh_token", "refresh_token": token});
    send(service.request("POST", "/users/token", "").basic_auth("app", Some("app-secret")).json(&body)).await
}
