//! Invalid requests: the error says what is wrong and what is allowed, as `{code, error}`, and nothing changes.

use serde_json::{Value, json};

use crate::service::{PASSWORD, Service, send};

#[tokio::test]
async fn explains_invalid_registrations() {
    let service = Service::start().await;
    let good = json!({"username": "alice", "email": "alice@example.com", "password": PASSWORD});
    let characters = |count: usize| json!("ö".repeat(count));
    let cases = [
        ("username", json!("Alice"), 400, "Username not valid: must have 2 to 36 characters"),
        ("username", json!(""), 400, "can not be empty"),
        ("username", json!(7), 400, "expected a string"),
        ("email", json!("alice"), 400, "email not valid: must look like name@example.com"),
        ("email", json!("alice@"), 400, "email not valid"),
        ("email", json!("alice@example.com\n"), 400, "email not valid"),
        ("password", characters(7), 400, "password not valid: must have 8 to 128 characters"),
        ("password", characters(129), 400, "password not valid: must have 8 to 128 characters"),
        ("password", Value::Null, 400, "body not valid"),
    ];
    for (member, value, status, text) in cases {
        let mut body = good.clone();
        body[member] = value;
        let (code, error) = service.post("/api/v2/users", "", body.clone()).await.error();
        assert_eq!(code, status, "{body}");
        assert!(error.contains(text), "{error}");
    }
    assert_eq!(service.post("/api/v2/users", "", good.clone()).await.status, 201, "none of that took the name");
    let (code, error) = service.post("/api/v2/users", "", good).await.error();
    assert_eq!((code, error.as_str()), (409, "username `alice` is taken: choose another"));
}

#[tokio::test]
async fn allowed_passwords_are_compared_in_full() {
    let service = Service::start().await;
    let long = format!("{}🗝", "a".repeat(127));
    let cut = format!("{}b", "a".repeat(127));
    for (username, password) in [("one", "pass öäü"), ("two", long.as_str())] {
        let body = json!({"username": username, "email": "a@example.com", "password": password});
        assert_eq!(service.post("/api/v2/users", "", body).await.status, 201);
        assert_eq!(service.login(username, password, Value::Null).await.status, 200);
    }
    assert_eq!(service.login("two", &cut, Value::Null).await.status, 400);
}

#[tokio::test]
async fn refuses_ids_with_other_characters() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let long = "a".repeat(37);
    for id in ["", "a", "My-App", "my.app", "my app", "-my-app", "my--app", "möbel", "token", &long] {
        let body = json!({"id": id, "name": ""});
        assert_eq!(service.post("/api/v2/applications", &general, body).await.error().0, 400, "{id}");
    }
    for path in ["/applications/My-App", "/applications/my%20app", "/applications/%00", "/applications/%FF"] {
        assert_eq!(service.get(path, &general).await.error().0, 400, "{path}");
    }
    let longest = json!({"id": "a".repeat(36), "name": "x".repeat(200)});
    assert_eq!(service.post("/api/v2/applications", &general, longest).await.status, 201);
    let too_long = json!({"id": "my-app", "name": "x".repeat(201)});
    assert_eq!(service.post("/api/v2/applications", &general, too_long).await.error().0, 400);
}

// Conformance: The body is `{code, error}`
#[tokio::test]
async fn refuses_malformed_bodies() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    let large = format!("{{\"id\": \"{}\"}}", "a".repeat(70_000));
    for (body, status) in [("", 400), ("{", 400), ("[]", 400), ("nonsense", 400), (deep.as_str(), 400), (&large, 413)] {
        let response = send(service.request("POST", "/applications", &general).body(body.to_owned())).await;
        assert_eq!(response.error().0, status);
    }
    let post = || service.request("POST", "/users/token", "").body("grant_type=password");
    assert_eq!(send(post()).await.error().0, 415);
    assert_eq!(send(post().header("content-type", "application/xml")).await.error().0, 415);
    let twice = post().header("content-type", "application/x-www-form-urlencoded").body("username=a&username=b");
    assert_eq!(send(twice).await.error().0, 400);
    assert_eq!(service.get("/users/token", "").await.error().0, 405);
    assert_eq!(service.get("/api/v2/nothing", &general).await.error().0, 404);
}

#[tokio::test]
async fn errors_do_not_echo_the_request() {
    let service = Service::start().await;
    for path in ["/", "/users/login", "/api/v2/users/me", "/api/v2/applications", "/key", "/nowhere"] {
        for method in ["TRACE", "TRACK", "CONNECT"] {
            let response = send(service.request(method, path, "Bearer echo")).await;
            assert!([404, 405].contains(&response.status.as_u16()), "{method} {path}: {response:?}");
            assert!(!response.text.contains("echo"), "{method} {path}: {response:?}");
        }
    }
}
