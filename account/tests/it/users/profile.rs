//! Changes of a profile, their effects, and their limits.

use airlock_account::{RateLimits, Settings};
use serde_json::{Value, json};
use server::rate_limit::RateLimit;

use crate::service::{PASSWORD, Service};

#[tokio::test]
async fn a_profile_changes_and_the_old_username_stays_reserved() {
    let service = Service::start().await;
    let token = service.user("alice").await;
    service.user("bob").await;
    let patch = async |body: Value| service.call("PATCH", "/api/v2/users/me", &token, body).await;
    assert_eq!(patch(json!({"username": "bob"})).await.status, 409);
    assert_eq!(patch(json!({"email": "no address"})).await.status, 400);
    assert_eq!(patch(json!({"name": {"first": "x".repeat(101)}})).await.status, 400);
    assert_eq!(patch(json!({"password": "a new password"})).await.status, 400);
    let change = json!({"username": "alicia", "email": "a@example.org", "name": {"first": "Alicia", "last": "B"}});
    assert_eq!(patch(change).await.status, 204);
    let me = service.get("/api/v2/users/me", &token).await.json();
    assert_eq!((&me["username"], &me["email"]), (&json!("alicia"), &json!("a@example.org")));
    assert_eq!((&me["name"], &me["valid"]), (&json!({"first": "Alicia", "last": "B"}), &json!(false)));
    assert_eq!(service.login("alice", PASSWORD, Value::Null).await.status, 400);
    assert_eq!(service.login("alicia", PASSWORD, Value::Null).await.status, 200);
    let body = json!({"username": "alice", "email": "x@example.com", "password": PASSWORD});
    assert_eq!(service.post("/api/v2/users", "", body).await.status, 409);
    assert_eq!(patch(json!({"username": "alice"})).await.status, 204, "whose it was may have it back");
}

#[tokio::test]
async fn a_profile_changes_atomically() {
    for service in Service::start_on_each_store().await {
        let token = service.user("alice").await;
        service.user("bob").await;
        let patch = async |body: Value| service.call("PATCH", "/api/v2/users/me", &token, body).await.status.as_u16();
        let before = service.get("/api/v2/users/me", &token).await.text;
        let all = |username: &str| {
            json!({"old_password": PASSWORD, "password": "another horse battery", "username": username,
                "email": "a@example.org", "name": {"first": "Alicia"}})
        };
        assert_eq!(patch(all("bob")).await, 409);
        for _ in 0..2 {
            service.post("/api/v2/users/me/emails/validate_email", &token, Value::Null).await;
        }
        assert_eq!(patch(all("alicia")).await, 429, "no more mails");
        assert_eq!(service.get("/api/v2/users/me", &token).await.text, before);
        assert_eq!(service.login("alice", PASSWORD, Value::Null).await.status, 200);
        service.pass(3600);
        assert_eq!(service.login("alicia", "another horse battery", Value::Null).await.status, 400);
        let token = service.general("alice").await;
        assert_eq!(service.call("PATCH", "/api/v2/users/me", &token, all("alicia")).await.status, 204);
        assert_eq!(service.login("alicia", "another horse battery", Value::Null).await.status, 200);
    }
}

#[tokio::test]
async fn limits_how_many_usernames_a_user_takes() {
    let patch = async |service: &Service, token: &str, username: &str| {
        let change = json!({"username": username});
        service.call("PATCH", "/api/v2/users/me", token, change).await.status.as_u16()
    };
    let service = Service::start().await;
    let token = service.user("alice").await;
    let mut statuses = Vec::new();
    for number in 0..4 {
        statuses.push(patch(&service, &token, &format!("alice-{number}")).await);
    }
    assert_eq!(statuses, [204, 204, 204, 429], "not so many at once");
    let limits = RateLimits { username: RateLimit::new(100, 100), ..RateLimits::default() };
    let service = Service::start_with(Settings { rate_limits: limits, ..Settings::default() }).await;
    let token = service.user("alice").await;
    for number in 0..10 {
        assert_eq!(patch(&service, &token, &format!("alice-{number}")).await, 204);
    }
    assert_eq!(patch(&service, &token, "alice-10").await, 400, "and not so many at all");
    assert_eq!(patch(&service, &token, "alice").await, 204, "but one of them again");
    let body = json!({"username": "alice-10", "email": "b@example.com", "password": PASSWORD});
    assert_eq!(service.post("/api/v2/users", "", body).await.status, 201, "what was refused is still free");
}
