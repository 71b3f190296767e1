//! Collaborators: added, changed, removed, and never with more rights than the caller's.

use serde_json::{Value, json};

use crate::service::{Service, send};

const PATH: &str = "/api/v2/applications/my-app/collaborators";

// Conformance: `username`, `email`, `rights`
// Conformance: GET /applications/{app_id}/collaborators
// Conformance: GET, PUT, DELETE /applications/{app_id}/collaborators/{username}
// Conformance: The user needs the rights at the time of the request
#[tokio::test]
async fn a_collaborator_is_added_uses_their_rights_and_is_removed() {
    for service in Service::start_on_each_store().await {
        let (alice, bob) = (service.user("alice").await, service.user("bob").await);
        let mine = service.application(&alice, "my-app").await;
        let his_path = format!("{PATH}/bob");
        let bare = service.call("PUT", &his_path, &mine, json!(["settings"])).await;
        assert_eq!((bare.status.as_u16(), bare.text.as_str()), (201, ""));
        let request = service.request("PUT", &his_path, &mine).header("accept", "application/json");
        let within = send(request.json(&json!({"rights": ["settings", "devices"], "username": "bob"}))).await;
        assert_eq!((within.status.as_u16(), within.json()), (201, json!({})));

        let expected = json!({"username": "bob", "email": "bob@example.com", "rights": ["settings", "devices"]});
        assert_eq!(service.get(&his_path, &mine).await.json(), expected);
        assert_eq!(service.get(PATH, &mine).await.json()[1], expected);
        assert_eq!(service.get("/applications", &bob).await.json()[0]["id"], "my-app");
        let his = service.restrict(&bob, &["apps:my-app"]).await;
        let rights = service.get("/api/v2/applications/my-app/rights", &his).await.json();
        assert_eq!(rights, json!(["settings", "devices"]));
        let seen = service.get("/api/v2/applications/my-app", &his).await.json();
        assert!(seen.get("collaborators").is_none(), "without the right there are no collaborators to see");

        assert_eq!(service.call("DELETE", &his_path, &mine, Value::Null).await.status, 204);
        assert_eq!(service.call("DELETE", &his_path, &mine, Value::Null).await.status, 404);
        let gone = service.get("/api/v2/applications/my-app", &his).await;
        assert_eq!(gone.error(), (404, "application `my-app` not found".to_owned()), "at once, not when it expires");
        assert_eq!(service.get("/applications", &bob).await.json(), json!([]));
    }
}

// Conformance: GET, PUT, DELETE /gateways/{gw_id}/collaborators/{username}; 400, 401, 403, 404
#[tokio::test]
async fn callers_cannot_grant_rights_that_they_lack() {
    let service = Service::start().await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    service.user("carol").await;
    let mine = service.application(&alice, "my-app").await;
    let give = async |authorization: &str, username: &str, rights: Value| {
        service.call("PUT", &format!("{PATH}/{username}"), authorization, rights).await.status.as_u16()
    };
    assert_eq!(give(&mine, "bob", json!(["collaborators", "devices"])).await, 201);
    assert_eq!(give(&mine, "carol", json!(["settings"])).await, 201);
    let his = service.restrict(&bob, &["apps:my-app"]).await;
    assert_eq!(give(&his, "bob", json!(["collaborators", "devices", "settings"])).await, 403);
    assert_eq!(give(&his, "carol", json!(["delete"])).await, 403);
    assert_eq!(give(&his, "carol", json!(["settings", "devices"])).await, 201, "what she has may stay");
    assert_eq!(give(&his, "carol", json!(["devices"])).await, 201, "what he lacks he may take");
    assert_eq!(give(&his, "carol", json!(["settings"])).await, 403, "but not give back");
}

// Conformance: The last collaborator with the right `collaborators` cannot be removed
// Conformance: The last collaborator, of applications and gateways
#[tokio::test]
async fn the_last_collaborator_who_can_add_others_cannot_be_removed() {
    let service = Service::start().await;
    let alice = service.user("alice").await;
    service.user("bob").await;
    let mine = service.application(&alice, "my-app").await;
    let own = format!("{PATH}/alice");
    let before = service.get(PATH, &mine).await.text;
    assert_eq!(service.call("DELETE", &own, &mine, Value::Null).await.error().0, 403);
    assert_eq!(service.call("PUT", &own, &mine, json!(["settings"])).await.error().0, 403);
    assert_eq!(service.get(PATH, &mine).await.text, before);
    let all = json!(["collaborators"]);
    assert_eq!(service.call("PUT", &format!("{PATH}/bob"), &mine, all).await.status, 201);
    assert_eq!(service.call("DELETE", &own, &mine, Value::Null).await.status, 204);
}

// Conformance: GET, PUT, DELETE /gateways/{gw_id}/collaborators/{username}; 400, 401, 403, 404
// Conformance: 400: an invalid gateway or collaborator, a scope that the client lacks
#[tokio::test]
async fn refuses_malformed_rights_and_unknown_users() {
    let service = Service::start().await;
    let alice = service.user("alice").await;
    service.user("bob").await;
    let mine = service.application(&alice, "my-app").await;
    let bodies = [
        json!([]),
        json!(["fly"]),
        json!(["gateway:settings"]),
        json!(["devices", "devices"]),
        json!({}),
        json!("devices"),
        json!([["devices"]]),
    ];
    for body in bodies {
        assert_eq!(service.call("PUT", &format!("{PATH}/bob"), &mine, body.clone()).await.error().0, 400, "{body}");
    }
    let cases = [("nobody", 404), ("*", 400), ("bob@example.com", 400), ("BOB", 400)];
    for (username, status) in cases {
        let response = service.call("PUT", &format!("{PATH}/{username}"), &mine, json!(["devices"])).await;
        assert_eq!(response.error().0, status, "{username}");
    }
    assert_eq!(service.get(PATH, &mine).await.json().as_array().unwrap().len(), 1);
}
