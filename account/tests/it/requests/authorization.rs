//! Access rules that `access_matrix.rs` does not cover: tokens of access keys, and where a token may be sent.

use serde_json::{Value, json};

use crate::service::{Service, bearer};

// Conformance: GET /applications/{app_id}/rights
#[tokio::test]
async fn a_keys_token_works_like_the_key_until_it_is_deleted() {
    let service = Service::start().await;
    let mine = service.application(&service.user("alice").await, "my-app").await;
    let key = service.key(&mine, "my-app", "reader", &["messages:up:r"]).await;
    let body = json!({"username": "my-app", "password": key});
    let exchanged = service.post("/api/v2/applications/token", "", body).await.json();
    let token = bearer(&exchanged["access_token"]);
    assert_eq!(service.get("/applications/my-app/rights", &token).await.json(), json!(["messages:up:r"]));
    assert_eq!(service.get("/applications/my-app/access-keys", &token).await.status, 403);
    assert_eq!(service.get("/applications/other-app", &token).await.status, 401);
    assert_eq!(service.get("/users/me", &token).await.status, 404, "not at the root");
    assert_eq!(service.get("/api/v2/users/me", &token).await.status, 403);
    let scope = json!({"scope": ["apps:my-app"]});
    assert_eq!(service.post("/users/restrict-token", &token, scope).await.status, 403);
    let path = "/applications/my-app/access-keys/reader";
    assert_eq!(service.call("DELETE", path, &mine, Value::Null).await.status, 204);
    assert_eq!(service.get("/applications/my-app/rights", &token).await.status, 401);
}

#[tokio::test]
async fn accepts_tokens_only_in_their_header() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let token = general.trim_start_matches("Bearer ");
    assert_eq!(service.get(&format!("/applications?access_token={token}"), "").await.status, 401);
    let twice = service.request("GET", "/applications", &general).header("authorization", &general);
    assert_eq!(twice.send().await.unwrap().status(), 400);
    for scheme in ["bearer", "BEARER"] {
        assert_eq!(service.get("/applications", &format!("{scheme} {token}")).await.status, 200);
    }
}
