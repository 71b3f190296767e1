//! Who may call what about gateways, components and OAuth clients: the tables beside that of applications.

use serde_json::{Value, json};
use types::ServiceName;

use crate::{
    authorization::{Row, check},
    service::Service,
};

/// The credentials, in the order of the columns. `key` is the gateway's own, and that of an application elsewhere.
const COLUMNS: [&str; 10] =
    ["none", "garbage", "expired", "component", "foreign", "general", "entity", "no right", "restricted", "key"];

/// The rows stand in such an order that those which succeed leave everything in place for the next one.
#[rustfmt::skip]
fn gateways() -> Vec<Row<10>> {
    let create = json!({"id": "my-gw", "frequency_plan": "EU"});
    let rights = json!(["gateway:status"]);
    let flag = json!({"auto_update": true});
    vec![
        //                                              none garb  exp comp  for  gen  ent  nor  res  key
        ("GET", "/gateways", Value::Null,              [401, 401, 401, 403, 200, 200, 403, 403, 403, 403]),
        ("POST", "/gateways", create,                  [401, 401, 401, 403, 409, 409, 403, 403, 403, 403]),
        ("GET", "/gateways/my-gw", Value::Null,        [200, 401, 401, 200, 200, 200, 200, 200, 200, 200]),
        ("GET", "/gateways/no-gw", Value::Null,        [404, 401, 401, 404, 404, 404, 404, 404, 404, 401]),
        ("GET", "/gateways/my-gw/rights", Value::Null, [401, 401, 401, 403, 404, 403, 200, 200, 403, 200]),
        ("GET", "/gateways/my-gw/token", Value::Null,  [401, 401, 401, 403, 404, 403, 200, 403, 403, 200]),
        ("PATCH", "/gateways/my-gw", flag,             [401, 401, 401, 403, 404, 403, 204, 403, 403, 403]),
        ("GET", "/gateways/my-gw/collaborators", Value::Null,
                                                       [401, 401, 401, 403, 404, 403, 200, 403, 403, 403]),
        ("GET", "/gateways/my-gw/collaborators/alice", Value::Null,
                                                       [401, 401, 401, 403, 404, 403, 200, 403, 403, 403]),
        ("PUT", "/gateways/my-gw/collaborators/carol", rights,
                                                       [401, 401, 401, 403, 404, 403, 201, 403, 403, 403]),
        ("DELETE", "/gateways/my-gw/collaborators/carol", Value::Null,
                                                       [401, 401, 401, 403, 404, 403, 204, 403, 403, 403]),
        ("DELETE", "/gateways/my-gw", Value::Null,     [401, 401, 401, 403, 404, 403, 204, 403, 403, 403]),
    ]
}

/// `no right` may get a token here: every right of a component opens something.
#[rustfmt::skip]
fn components() -> Vec<Row<10>> {
    let create = json!({"id": "my-handler"});
    let rights = json!(["component:settings"]);
    let path = "/components/handlers/my-handler";
    vec![
        //                                              none garb  exp comp  for  gen  ent  nor  res  key
        ("GET", "/components", Value::Null,            [401, 401, 401, 403, 200, 200, 403, 403, 403, 403]),
        ("POST", "/components/handlers", create,       [401, 401, 401, 403, 409, 409, 403, 403, 403, 403]),
        ("GET", path, Value::Null,                     [401, 401, 401, 403, 404, 403, 200, 200, 403, 403]),
        ("GET", "/components/handlers/no-handler", Value::Null,
                                                       [401, 401, 401, 403, 404, 404, 403, 403, 403, 403]),
        ("GET", "/components/routers/my-handler", Value::Null,
                                                       [401, 401, 401, 403, 404, 404, 404, 404, 403, 403]),
        ("GET", "/components/handlers/my-handler/rights", Value::Null,
                                                       [401, 401, 401, 403, 404, 403, 200, 200, 403, 401]),
        ("GET", "/components/handlers/my-handler/token", Value::Null,
                                                       [401, 401, 401, 403, 404, 403, 200, 200, 403, 403]),
        ("GET", "/components/handlers/my-handler/collaborators", Value::Null,
                                                       [401, 401, 401, 403, 404, 403, 200, 403, 403, 403]),
        ("GET", "/components/handlers/my-handler/collaborators/alice", Value::Null,
                                                       [401, 401, 401, 403, 404, 403, 200, 403, 403, 403]),
        ("PUT", "/components/handlers/my-handler/collaborators/carol", rights,
                                                       [401, 401, 401, 403, 404, 403, 201, 403, 403, 403]),
        ("DELETE", "/components/handlers/my-handler/collaborators/carol", Value::Null,
                                                       [401, 401, 401, 403, 404, 403, 204, 403, 403, 403]),
        ("DELETE", path, Value::Null,                  [401, 401, 401, 403, 404, 403, 204, 403, 403, 403]),
    ]
}

/// The token in the columns from `entity` on has no scope for clients.
#[rustfmt::skip]
fn clients() -> Vec<Row<10>> {
    let create = json!({"name": "my-client", "uri": "app://callback", "scope": ["apps"]});
    vec![
        //                                              none garb  exp comp  for  gen  ent  nor  res  key
        ("GET", "/clients", Value::Null,               [401, 401, 401, 403, 200, 200, 403, 403, 403, 403]),
        ("POST", "/clients", create,                   [401, 401, 401, 403, 409, 409, 403, 403, 403, 403]),
        ("GET", "/clients/my-client", Value::Null,     [401, 401, 401, 403, 404, 200, 403, 403, 403, 403]),
        ("PATCH", "/clients/my-client", json!({}),     [401, 401, 401, 403, 404, 204, 403, 403, 403, 403]),
        ("DELETE", "/clients/my-client", Value::Null,  [401, 401, 401, 403, 404, 204, 403, 403, 403, 403]),
    ]
}

#[tokio::test]
async fn every_endpoint_of_gateways_answers_every_credential_as_the_table_says() {
    for service in Service::start_everywhere().await {
        let rights = json!(["gateway:status"]);
        let mut credentials = credentials(&service, "gateways:my-gw", "/gateways/my-gw", rights).await;
        let seen = service.get("/api/v2/gateways/my-gw", &credentials[6]).await.json();
        *credentials.last_mut().unwrap() = format!("Key {}", seen["key"].as_str().unwrap());
        check(&service, COLUMNS, &credentials, gateways()).await;
    }
}

#[tokio::test]
async fn every_endpoint_of_components_answers_every_credential_as_the_table_says() {
    for service in Service::start_everywhere().await {
        let rights = json!(["component:settings"]);
        let scope = "components:my-handler";
        let credentials = credentials(&service, scope, "/components/handlers/my-handler", rights).await;
        check(&service, COLUMNS, &credentials, components()).await;
    }
}

#[tokio::test]
async fn every_endpoint_of_clients_answers_every_credential_as_the_table_says() {
    for service in Service::start_everywhere().await {
        let credentials = credentials(&service, "gateways:my-gw", "/gateways/my-gw", json!(["gateway:status"])).await;
        let create = json!({"name": "my-client", "uri": "app://callback", "scope": ["apps"]});
        assert_eq!(service.post("/api/v2/clients", &credentials[5], create).await.status, 201);
        check(&service, COLUMNS, &credentials, clients()).await;
    }
}

/// A credential for each column, and the entity that they are about.
async fn credentials(service: &Service, scope: &str, path: &str, rights: Value) -> Vec<String> {
    let alice = service.user("alice").await;
    for username in ["bob", "carol", "dave"] {
        service.user(username).await;
    }
    let expired = if path.starts_with("/gateways") {
        service.gateway(&alice, "my-gw").await
    } else {
        service.handler(&alice, "my-handler").await
    };
    service.pass(3700);
    let general = service.general("alice").await;
    let (foreign, dave) = (service.general("bob").await, service.general("dave").await);
    let entity = service.restrict(&general, &[scope]).await;
    let restricted = service.application(&general, "my-app").await;
    let dave_at = format!("/api/v2{path}/collaborators/dave");
    assert_eq!(service.call("PUT", &dave_at, &entity, rights).await.status, 201);
    let no_right = service.restrict(&dave, &[scope]).await;
    let key = format!("Key {}", service.key(&restricted, "my-app", "all", &["settings", "delete"]).await);
    let component = service.account.component_token(ServiceName::Handler, &"ours".parse().unwrap()).await.unwrap();
    let (garbage, component) = ("Bearer e30.e30.AA".to_owned(), format!("Bearer {}", component.expose()));
    vec![String::new(), garbage, expired, component, foreign, general, entity, no_right, restricted, key]
}
