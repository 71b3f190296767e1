//! Rate limits slow down guessing, but only for the guesser.

use airlock_account::{RateLimits, Settings};
use serde_json::{Value, json};
use server::rate_limit::RateLimit;

use crate::service::{PASSWORD, Service, send};

#[tokio::test]
async fn twenty_wrong_passwords_pause_further_attempts() {
    for service in Service::start_on_each_store().await {
        service.user("alice").await;
        service.user("bob").await;
        for _ in 0..19 {
            assert_eq!(service.login("alice", "wrong password", Value::Null).await.status, 400);
        }
        let stopped = service.login("alice", PASSWORD, Value::Null).await;
        assert_eq!(stopped.error(), (429, "too many attempts: try again in 60 s".to_owned()));
        for (header, value) in
            [("retry-after", "60"), ("ratelimit-policy", "\"login\";q=20;w=1200"), ("ratelimit", "\"login\";r=0;t=60")]
        {
            assert_eq!(stopped.headers[header], value);
        }
        assert_eq!(service.login("bob", PASSWORD, Value::Null).await.status, 200, "others are not held up");
        service.pass(60);
        assert_eq!(service.login("alice", PASSWORD, Value::Null).await.status, 200);
    }
}

#[tokio::test]
async fn behind_a_proxy_guessing_is_limited_per_client_address() {
    let service = Service::start_with(Settings { proxies: 1, ..Settings::default() }).await;
    service.user("alice").await;
    let login = async |from: &str, password: &str| {
        let body = json!({"username": "alice", "password": password});
        let request = service.request("POST", "/api/v2/users/login", "").header("x-forwarded-for", from);
        send(request.json(&body)).await.status.as_u16()
    };
    for number in 0..20 {
        // The client's own entry comes before the proxy's and must be ignored.
        assert_eq!(login(&format!("198.51.100.{number}, 192.0.2.66"), "wrong password").await, 401);
    }
    assert_eq!(login("192.0.2.66", PASSWORD).await, 429);
    assert_eq!(login("192.0.2.7", PASSWORD).await, 200);
}

#[tokio::test]
async fn trusts_forwarded_addresses_only_behind_a_proxy() {
    let service = Service::start().await;
    service.user("alice").await;
    let login = async |number: usize| {
        let body = json!({"username": "alice", "password": "wrong password"});
        let from = format!("198.51.100.{number}");
        let request = service.request("POST", "/api/v2/users/login", "").header("x-forwarded-for", from);
        send(request.json(&body)).await.status.as_u16()
    };
    let mut statuses = Vec::new();
    for number in 0..20 {
        statuses.push(login(number).await);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 19, "{statuses:?}");
    assert_eq!(statuses.last(), Some(&429));
}

#[tokio::test]
async fn registrations_from_one_address_are_rate_limited() {
    let service = Service::start().await;
    for number in 0..20 {
        let body = json!({"username": format!("user-{number}"), "email": "a@example.com", "password": PASSWORD});
        assert_eq!(service.post("/api/v2/users", "", body).await.status, 201);
    }
    let body = json!({"username": "one-more", "email": "a@example.com", "password": PASSWORD});
    let stopped = service.post("/api/v2/users", "", body.clone()).await;
    assert_eq!(stopped.status, 429, "{stopped:?}");
    assert_eq!(stopped.headers["ratelimit-policy"], "\"registration\";q=20;w=3600");
    service.pass(180);
    assert_eq!(service.post("/api/v2/users", "", body).await.status, 201);
}

#[tokio::test]
async fn invalid_registrations_do_not_count() {
    let service = Service::start().await;
    for _ in 0..30 {
        let body = json!({"username": "alice", "email": "no address", "password": PASSWORD});
        assert_eq!(service.post("/api/v2/users", "", body).await.status, 400);
    }
    service.user("alice").await;
}

#[tokio::test]
async fn distributed_guessing_does_not_lock_out_known_addresses() {
    let limits = RateLimits { user: RateLimit::new(3, 1), ..RateLimits::default() };
    for service in
        Service::start_on_each_store_with(Settings { proxies: 1, rate_limits: limits, ..Settings::default() }).await
    {
        let call = async |path: &str, from: &str, password: &str| {
            let body = json!({"username": "alice", "email": "alice@example.com", "password": password});
            let request = service.request("POST", path, "").header("x-forwarded-for", from);
            send(request.json(&body)).await.status.as_u16()
        };
        let login = async |from: &str, password: &str| call("/api/v2/users/login", from, password).await;
        assert_eq!(call("/api/v2/users", "192.0.2.1", PASSWORD).await, 201);
        assert_eq!(login("192.0.2.2", PASSWORD).await, 200);
        let mut statuses = Vec::new();
        for number in 0..3 {
            statuses.push(login(&format!("198.51.100.{number}"), "wrong password").await);
        }
        assert_eq!(statuses, [401, 401, 429]);
        assert_eq!(login("192.0.2.3", PASSWORD).await, 429, "an address like any other");
        for _ in 0..3 {
            assert_eq!(login("192.0.2.1", PASSWORD).await, 200, "where the user registered");
            assert_eq!(login("192.0.2.2", PASSWORD).await, 200, "where the user logged in");
        }
        service.pass(3600);
        assert_eq!(login("192.0.2.3", PASSWORD).await, 200);
        service.pass(90 * 24 * 3600);
        for number in 0..3 {
            assert_eq!(login(&format!("198.51.100.{number}"), "wrong password").await, 401);
        }
        assert_eq!(login("192.0.2.2", PASSWORD).await, 429, "it was forgotten");
    }
}
