//! Components: registered by users, with tokens and collaborators.

use serde_json::{Value, json};
use types::ServiceName;

use crate::{oauth::claims::part, service::Service};

const PATH: &str = "/api/v2/components/handlers/my-handler";

// Conformance: Users, applications, gateways, components; tokens with scopes and rights
#[tokio::test]
async fn a_component_is_created_read_and_deleted() {
    for service in Service::start_on_each_store().await {
        let general = service.user("alice").await;
        let response = service.post("/api/v2/components/handlers", &general, json!({"id": "my-handler"})).await;
        let all = json!(["component:settings", "component:delete", "component:collaborators"]);
        let expected = json!({
            "type": "handler", "id": "my-handler", "created": "2026-01-01T00:00:00.000Z",
            "collaborators": [{"username": "alice", "email": "alice@example.com", "rights": all}],
        });
        assert_eq!((response.status.as_u16(), response.json()), (201, expected.clone()));
        let mine = service.restrict(&general, &["components:my-handler"]).await;
        assert_eq!(service.get(PATH, &mine).await.json(), expected);
        assert_eq!(service.get("/components", &general).await.json(), json!([expected]));
        assert_eq!(service.get(&format!("{PATH}/rights"), &mine).await.json(), all);
        for path in ["routers/my-handler", "handlers/no-handler", "things/my-handler", "handler/my-handler"] {
            let status = service.get(&format!("/api/v2/components/{path}"), &mine).await.error().0;
            assert!([403, 404].contains(&status), "{path}: {status}");
        }
        for (services, id, status) in [
            ("handlers", "my-handler", 409),
            ("routers", "my-handler", 409),
            ("things", "new", 404),
            ("brokers", "X", 400),
        ] {
            let path = format!("/api/v2/components/{services}");
            assert_eq!(service.post(&path, &general, json!({ "id": id })).await.error().0, status, "{services} {id}");
        }
        assert_eq!(service.call("DELETE", PATH, &mine, Value::Null).await.status, 204);
        assert_eq!(service.get(PATH, &mine).await.error().0, 404);
        assert_eq!(service.get(&format!("{PATH}/token"), &mine).await.error().0, 404);
        assert_eq!(service.get("/components", &general).await.json(), json!([]));
        let body = json!({"id": "my-handler"});
        assert_eq!(service.post("/components/handlers", &general, body).await.error().0, 409, "taken for ever");
    }
}

#[tokio::test]
async fn a_component_token_is_valid_for_93_days() {
    let service = Service::start().await;
    let alice = service.user("alice").await;
    let mine = service.handler(&alice, "my-handler").await;
    let response = service.get(&format!("{PATH}/token"), &mine).await;
    assert_eq!(response.headers["cache-control"], "no-store");
    let response = response.json();
    assert_eq!(response["expires"], "2026-04-04T00:00:00.000Z");
    assert_eq!(response.as_object().unwrap().len(), 2, "{response}");
    let claims = part(response["token"].as_str().unwrap(), 1);
    let now = service.now_seconds();
    assert_eq!((&claims["sub"], &claims["type"]), (&json!("my-handler"), &json!("handler")));
    assert_eq!(claims["exp"], json!(now + 8_035_200));
    assert_eq!(claims["owner"], part(&alice, 1)["sub"]);
}

#[tokio::test]
async fn a_component_gets_a_new_token_with_its_current_one() {
    let service = Service::start().await;
    let mine = service.handler(&service.user("alice").await, "my-handler").await;
    let token = async |authorization: &str| service.get(&format!("{PATH}/token"), authorization).await;
    let bearer = |response: &Value| format!("Bearer {}", response["token"].as_str().unwrap());
    let first = bearer(&token(&mine).await.json());
    service.pass(60 * 24 * 3600);
    let second = token(&first).await.json();
    assert_eq!(second["expires"], "2026-06-03T00:00:00.000Z");
    service.pass(60 * 24 * 3600);
    assert_eq!(token(&first).await.error().0, 401, "it has expired");
    let third = bearer(&token(&bearer(&second)).await.json());

    let other = service.account.component_token(ServiceName::Handler, &"ours".parse().unwrap()).await.unwrap();
    assert_eq!(token(&format!("Bearer {}", other.expose())).await.error().0, 403);
    let path = "/api/v2/components/routers/my-handler/token";
    assert_eq!(service.get(path, &third).await.error().0, 403, "it is a handler, and no router");
    let mine = service.restrict(&service.general("alice").await, &["components:my-handler"]).await;
    assert_eq!(service.call("DELETE", PATH, &mine, Value::Null).await.status, 204);
    assert_eq!(token(&third).await.error().0, 401, "it was deleted");
}

// Conformance: Scopes and rights for components
// Conformance: Of components: `component:settings`, `component:delete`
#[tokio::test]
async fn collaborators_of_a_component_have_the_rights_they_were_granted() {
    let service = Service::start().await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    let hers = service.handler(&alice, "my-handler").await;
    let his_path = format!("{PATH}/collaborators/bob");
    let rights = json!({"rights": ["component:collaborators"]});
    assert_eq!(service.call("PUT", &his_path, &hers, rights).await.status, 201);
    let his = service.restrict(&bob, &["components:my-handler"]).await;
    assert_eq!(service.get(&his_path, &his).await.json()["rights"], json!(["component:collaborators"]));
    assert_eq!(service.get(&format!("{PATH}/token"), &his).await.error().0, 403);
    assert_eq!(service.call("DELETE", PATH, &his, Value::Null).await.error().0, 403);
    for wrong in [json!(["component:delete"]), json!(["component:settings", "component:collaborators"])] {
        assert_eq!(service.call("PUT", &his_path, &his, wrong).await.error().0, 403);
    }
    assert_eq!(service.call("PUT", &his_path, &hers, json!(["settings"])).await.error().0, 400);
    let hers_path = format!("{PATH}/collaborators/alice");
    assert_eq!(service.call("DELETE", &hers_path, &his, Value::Null).await.status, 204);
    assert_eq!(service.call("DELETE", &his_path, &his, Value::Null).await.error().0, 403, "the last one stays");
    assert_eq!(service.get(PATH, &hers).await.error().0, 404);
}

#[tokio::test]
async fn components_of_the_operator_and_of_users_are_separate() {
    let service = Service::start().await;
    let general = service.user("alice").await;
    let token =
        async |service_name, id: &str| service.account.component_token(service_name, &id.parse().unwrap()).await;
    token(ServiceName::Handler, "ours").await.unwrap();
    token(ServiceName::Handler, "ours").await.unwrap();
    assert_eq!(service.post("/components/handlers", &general, json!({"id": "ours"})).await.error().0, 409);
    service.handler(&general, "hers").await;
    assert!(token(ServiceName::Handler, "hers").await.is_err());
    assert!(token(ServiceName::Router, "ours").await.is_err(), "an id is one component's");
}

#[tokio::test]
async fn whoever_loses_the_component_cannot_go_on_with_its_token() {
    let service = Service::start().await;
    let (alice, bob) = (service.user("alice").await, service.user("bob").await);
    let hers = service.handler(&alice, "my-handler").await;
    let app = service.application(&alice, "my-app").await;
    let key = service.key(&app, "my-app", "reader", &["messages:up:r"]).await;
    let his_path = format!("{PATH}/collaborators/bob");
    let grant = async |rights: Value| service.call("PUT", &his_path, &hers, rights).await.status.as_u16();
    let token = async |authorization: &str| {
        let answer = service.get(&format!("{PATH}/token"), authorization).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        format!("Bearer {}", answer.json()["token"].as_str().unwrap())
    };
    // Renewing the token, and exchanging a key with it.
    let works = async |token: &str| {
        let body = json!({"username": "my-app", "password": key});
        let exchanged = service.post("/applications/token", token, body).await;
        assert_eq!(exchanged.headers.contains_key("www-authenticate"), exchanged.status == 401, "not the key is wrong");
        let renewed = service.get(&format!("{PATH}/token"), token).await;
        assert_eq!(renewed.status, exchanged.status);
        renewed.status == 200
    };
    assert_eq!(grant(json!(["component:settings"])).await, 201);
    let his = service.restrict(&bob, &["components:my-handler"]).await;
    let kept = token(&his).await;
    assert!(works(&kept).await);
    assert_eq!(service.call("DELETE", &his_path, &hers, Value::Null).await.status, 204);
    assert!(!works(&kept).await, "its collaborator was removed");
    assert!(works(&token(&hers).await).await, "a new one, in the same second");

    assert_eq!(grant(json!(["component:settings", "component:delete"])).await, 201);
    let kept = token(&his).await;
    assert_eq!(grant(json!(["component:settings"])).await, 201);
    assert!(works(&kept).await, "other rights do not matter");
    assert_eq!(grant(json!(["component:delete"])).await, 201);
    assert!(!works(&kept).await, "its collaborator lost the right");

    let kept = token(&hers).await;
    let id = "my-handler".parse().unwrap();
    service.account.revoke_component_tokens(&id).await.unwrap();
    assert!(!works(&kept).await, "the operator revoked it");
    let kept = token(&hers).await;
    assert!(works(&kept).await);
    assert_eq!(service.call("DELETE", PATH, &hers, Value::Null).await.status, 204);
    assert!(!works(&kept).await, "the component was deleted");
    assert!(service.account.revoke_component_tokens(&id).await.is_err());
}
