//! Sessions at the site: cookies, profile and password, and protection against cross-site requests.

use airlock_account::Settings;
use serde_json::{Value, json};

use crate::service::{PASSWORD, Service, TestResponse, bearer, send};

const HERE: (&str, &str) = ("sec-fetch-site", "same-origin");

fn cookie(response: &TestResponse) -> String {
    let set = response.headers["set-cookie"].to_str().unwrap();
    set.split(';').next().unwrap().to_owned()
}

async fn log_in(service: &Service, username: &str, password: &str) -> TestResponse {
    let body = json!({"username": username, "password": password});
    service.post("/api/v2/users/login", "", body).await
}

async fn with(service: &Service, cookie: &str, method: &str, path: &str, body: Value) -> TestResponse {
    let request = service.request(method, path, "").header("cookie", cookie).header(HERE.0, HERE.1);
    send(if body.is_null() { request } else { request.json(&body) }).await
}

#[tokio::test]
async fn a_login_sets_a_new_cookie_that_a_logout_invalidates() {
    for service in Service::start_on_each_store().await {
        service.user("alice").await;
        let form = [("username", "alice"), ("password", PASSWORD)];
        let first = send(service.request("POST", "/api/v2/users/login", "").form(&form)).await;
        assert_eq!(first.status, 200, "{first:?}");
        let set = first.headers["set-cookie"].to_str().unwrap();
        for attribute in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=1209600"] {
            assert!(set.contains(attribute), "{set}");
        }
        assert!(!set.contains("Secure") && !set.contains("alice"), "{set}");
        let second = cookie(&log_in(&service, "alice", PASSWORD).await);
        let first = cookie(&first);
        assert_ne!(first, second);
        assert_eq!(with(&service, &first, "GET", "/api/v2/users/me", Value::Null).await.json()["username"], "alice");
        assert_eq!(with(&service, &first, "POST", "/users/logout", Value::Null).await.status, 204);
        assert_eq!(with(&service, &first, "GET", "/api/v2/users/me", Value::Null).await.status, 401);
        assert_eq!(with(&service, &second, "GET", "/api/v2/users/me", Value::Null).await.status, 200);
        service.pass(14 * 24 * 3600);
        assert_eq!(with(&service, &second, "GET", "/api/v2/users/me", Value::Null).await.status, 401);
    }
}

// Conformance: A session is an encrypted, HTTP-only
#[tokio::test]
async fn over_https_the_cookie_is_secure() {
    let public_url = Some("https://account.example.com".parse().unwrap());
    let service = Service::start_with(Settings { public_url, ..Settings::default() }).await;
    service.user("alice").await;
    let response = log_in(&service, "alice", PASSWORD).await;
    assert!(response.headers["set-cookie"].to_str().unwrap().contains("Secure"));
}

#[tokio::test]
async fn refuses_wrong_names_like_wrong_passwords_and_forged_cookies() {
    let service = Service::start().await;
    service.user("alice").await;
    let wrong = log_in(&service, "alice", "wrong password").await;
    assert_eq!(wrong.error(), (401, "invalid username or password".to_owned()));
    for username in ["nobody", "NO NAME", ""] {
        let unknown = log_in(&service, username, "wrong password").await;
        assert_eq!((unknown.status, &unknown.text), (wrong.status, &wrong.text), "{username}");
    }
    let good = cookie(&log_in(&service, "alice", PASSWORD).await);
    let cut = &good[..good.len() - 2];
    for forged in ["session=", "session=AAAA", "session=%00", cut, "other=1"] {
        assert_eq!(with(&service, forged, "GET", "/api/v2/users/me", Value::Null).await.status, 401, "{forged}");
    }
}

// Conformance: A session is an encrypted, HTTP-only
#[tokio::test]
async fn a_session_gives_access_to_the_profile_only() {
    let service = Service::start().await;
    let mine = service.user("alice").await;
    service.application(&mine, "my-app").await;
    let session = cookie(&log_in(&service, "alice", PASSWORD).await);
    for (method, path, body) in [
        ("GET", "/api/v2/applications", Value::Null),
        ("POST", "/api/v2/applications", json!({"id": "new-app", "name": ""})),
        ("GET", "/api/v2/applications/my-app", Value::Null),
        ("DELETE", "/api/v2/applications/my-app", Value::Null),
        ("POST", "/users/restrict-token", json!({"scope": ["apps:my-app"]})),
    ] {
        assert_eq!(with(&service, &session, method, path, body).await.status, 401, "{method} {path}");
    }
}

#[tokio::test]
async fn cross_site_requests_change_nothing() {
    let service = Service::start().await;
    service.user("alice").await;
    let session = cookie(&log_in(&service, "alice", PASSWORD).await);
    let base = service.base.clone();
    let cases = [
        (vec![], 403),
        (vec![("origin", "https://evil.example")], 403),
        (vec![("origin", "null")], 403),
        (vec![("origin", ""), ("host", "evil.example")], 403),
        (vec![("sec-fetch-site", "cross-site"), ("origin", &base)], 403),
        (vec![("sec-fetch-site", "same-site")], 403),
        (vec![("sec-fetch-site", "same-site"), ("authorization", "x")], 403),
        (vec![("sec-fetch-site", "same-site"), ("authorization", "Basic eDp5")], 403),
        (vec![("sec-fetch-site", "same-site"), ("authorization", "Bearer x")], 401),
        (vec![("sec-fetch-site", "none")], 403),
        (vec![("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], 403),
        (vec![("origin", &base)], 204),
        (vec![("sec-fetch-site", "same-origin")], 204),
    ];
    for (headers, status) in cases {
        let mut request = service.request("PATCH", "/api/v2/users/me", "").header("cookie", &session);
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        let response = send(request.json(&json!({"name": {"first": "Alice"}}))).await;
        assert_eq!(response.status, status, "{headers:?} {response:?}");
    }
    let login = |site: &'static str| {
        let body = json!({"username": "alice", "password": PASSWORD});
        service.request("POST", "/api/v2/users/login", "").header("sec-fetch-site", site).json(&body)
    };
    assert_eq!(send(login("cross-site")).await.status, 403, "nobody is logged in by a foreign page");
    assert_eq!(send(login("same-origin")).await.status, 200);
}

#[tokio::test]
async fn a_new_password_ends_everything_but_the_current_session() {
    const NEW: &str = "another horse battery";
    for service in Service::start_on_each_store().await {
        service.user("alice").await;
        let login = service.login("alice", PASSWORD, Value::Null).await.json();
        let token = bearer(&login["access_token"]);
        let [mine, other] =
            [cookie(&log_in(&service, "alice", PASSWORD).await), cookie(&log_in(&service, "alice", PASSWORD).await)];
        let change = |old: &str| json!({"old_password": old, "password": NEW});
        let patch = async |body| with(&service, &mine, "PATCH", "/api/v2/users/me", body).await;
        assert_eq!(patch(change("not the old one")).await.status, 403);
        assert_eq!(with(&service, &other, "GET", "/api/v2/users/me", Value::Null).await.status, 200);
        let changed = patch(change(PASSWORD)).await;
        assert_eq!(changed.status, 204, "{changed:?}");
        let renewed = cookie(&changed);
        for (cookie, status) in [(&mine, 401), (&other, 401), (&renewed, 200)] {
            assert_eq!(with(&service, cookie, "GET", "/api/v2/users/me", Value::Null).await.status, status);
        }
        assert_eq!(service.get("/api/v2/users/me", &token).await.status, 401, "tokens end too");
        let refresh = json!({"grant_type": "refresh_token", "refresh_token": login["refresh_token"]});
        let request = service.request("POST", "/users/token", "").basic_auth("ttnctl", Some("ttnctl"));
        assert_eq!(send(request.json(&refresh)).await.error(), (400, "invalid_grant".to_owned()));
        assert_eq!(service.login("alice", PASSWORD, Value::Null).await.status, 400);
        let again = service.login("alice", NEW, Value::Null).await.json();
        assert_eq!(service.get("/api/v2/users/me", &bearer(&again["access_token"])).await.status, 200, "at once");
    }
}

#[tokio::test]
async fn disabling_a_user_takes_effect_at_once_and_can_be_undone() {
    let service = Service::start().await;
    let token = service.user("alice").await;
    let session = cookie(&log_in(&service, "alice", PASSWORD).await);
    let alice = "alice".parse().unwrap();
    service.account.set_disabled(&alice, true).await.unwrap();
    assert_eq!(service.get("/api/v2/users/me", &token).await.status, 401);
    assert_eq!(with(&service, &session, "GET", "/api/v2/users/me", Value::Null).await.status, 401);
    assert_eq!(log_in(&service, "alice", PASSWORD).await.status, 401);
    service.account.set_disabled(&alice, false).await.unwrap();
    assert_eq!(log_in(&service, "alice", PASSWORD).await.status, 200);
    service.account.reset_password(&alice, types::Secret::new("given by an operator")).await.unwrap();
    assert_eq!(log_in(&service, "alice", PASSWORD).await.status, 401);
    assert_eq!(log_in(&service, "alice", "given by an operator").await.status, 200);
}

#[tokio::test]
async fn passwords_are_compared_in_full_and_common_ones_refused() {
    let service = Service::start().await;
    let (emoji, long) = ("🐴".repeat(8), "x".repeat(128));
    let cases = [
        ("short-1", "1234567", 400),
        ("common-1", "Password123", 400),
        ("user-name-1", "user-name-1", 400),
        ("long-1", &"x".repeat(129), 400),
        ("good-1", "12 45 78", 201),
        ("good-2", emoji.as_str(), 201),
        ("good-3", long.as_str(), 201),
    ];
    for (username, password, status) in cases {
        let body = json!({"username": username, "email": "a@example.com", "password": password});
        assert_eq!(service.post("/api/v2/users", "", body).await.status, status, "{username}");
        if status == 201 {
            assert_eq!(service.login(username, password, Value::Null).await.status, 200, "{username}");
            assert_eq!(service.login(username, &password[..password.len() - 4], Value::Null).await.status, 400);
        }
    }
}

#[tokio::test]
async fn a_new_session_replaces_the_oldest_of_too_many() {
    let service = Service::start().await;
    service.user("alice").await;
    let mut sessions = Vec::new();
    for _ in 0..21 {
        service.pass(60);
        sessions.push(cookie(&log_in(&service, "alice", PASSWORD).await));
    }
    let me = async |session: &str| with(&service, session, "GET", "/api/v2/users/me", Value::Null).await.status;
    assert_eq!((me(&sessions[0]).await.as_u16(), me(&sessions[1]).await.as_u16()), (401, 200));
}
