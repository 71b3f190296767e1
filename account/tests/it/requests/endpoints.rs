//! The response of every endpoint, with and without `Accept: application/json`.

use serde_json::{Value, json};

use crate::service::{Service, TestResponse, send};

/// An expected body.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Empty,
    Is(&'static str),
    Eui,
    Members(&'static str),
    List(&'static str),
    Texts,
}
use Shape::{Empty, Eui, Is, List, Members, Texts};

const APPLICATION: &str = "id name euis created rights collaborators access_keys";
const DELETED: &str = "id name euis created rights collaborators access_keys deleted";
const COLLABORATOR: &str = "username email rights";
const KEY: &str = "name key _id rights";
const GATEWAY: &str = "id activated frequency_plan frequency_plan_url auto_update beta_updates location_public \
                       status_public owner_public attributes router fallback_routers owner collaborators key";
const PUBLIC: &str = "id activated frequency_plan frequency_plan_url auto_update beta_updates location_public \
                      status_public owner_public attributes router fallback_routers";
const COMPONENT: &str = "type id created collaborators";
const CLIENT: &str = "name description secret uri grants scope accepted rejected official";
const TOKEN: &str = "access_token expires_in";

/// Sender of the request: nobody, a user with general scopes, or a user with the entity in the scope.
#[derive(Clone, Copy, Debug)]
enum Who {
    Nobody,
    General,
    Entity,
}
use Who::{Entity, General, Nobody};

/// Method, path, caller, request body, status and expected body. Some responses differ for clients that accept JSON.
type Row = (&'static str, &'static str, Who, Value, u16, Shape);

/// Each row relies on the effects of the previous ones.
fn rows() -> Vec<Row> {
    let none = || Value::Null;
    let eui = "/applications/app/euis/70B3D57ED0000001";
    let rights = || json!(["settings"]);
    let key = |name: &str| json!({"name": name, "rights": ["devices"]});
    let settings = json!({"name": "New name"});
    let app_rights =
        r#"["settings","delete","collaborators","messages:up:r","messages:up:w","messages:down:w","devices"]"#;
    vec![
        ("POST", "/applications", General, json!({"id": "app", "name": "Mine"}), 201, Members(APPLICATION)),
        ("POST", "/applications", General, json!({"id": "app", "name": "Mine"}), 409, Members("code error")),
        ("GET", "/applications", General, none(), 200, List(APPLICATION)),
        ("GET", "/applications/app", Entity, none(), 200, Members(APPLICATION)),
        ("PATCH", "/applications/app", Entity, settings, 204, Empty),
        ("GET", "/applications/app/euis", Entity, none(), 200, Texts),
        ("POST", "/applications/app/euis", Entity, none(), 201, Eui),
        ("POST for JSON", "/applications/app/euis", Entity, none(), 201, Members("eui")),
        ("PUT", eui, Entity, none(), 204, Empty),
        ("DELETE", eui, Entity, none(), 204, Empty),
        ("GET", "/applications/app/collaborators", Entity, none(), 200, List(COLLABORATOR)),
        ("PUT", "/applications/app/collaborators/bob", Entity, rights(), 201, Empty),
        ("PUT for JSON", "/applications/app/collaborators/bob", Entity, rights(), 201, Is("{}")),
        ("GET", "/applications/app/collaborators/bob", Entity, none(), 200, Members(COLLABORATOR)),
        ("DELETE", "/applications/app/collaborators/bob", Entity, none(), 204, Empty),
        ("GET", "/applications/app/rights", Entity, none(), 200, Is(app_rights)),
        ("GET", "/applications/app/owner", Entity, none(), 200, Members("id username")),
        ("GET", "/applications/app/access-keys", Entity, none(), 200, List(KEY)),
        ("POST", "/applications/app/access-keys", Entity, key("one"), 204, Empty),
        ("POST", "/applications/app/access-keys", Entity, key("one"), 409, Members("code error")),
        ("GET", "/applications/app/access-keys/one", Entity, none(), 200, Members(KEY)),
        ("DELETE", "/applications/app/access-keys/one", Entity, none(), 204, Empty),
        ("POST for JSON", "/applications/app/access-keys", Entity, key("two"), 201, Members(KEY)),
        ("DELETE", "/applications/app", Entity, none(), 204, Empty),
        ("GET", "/applications", General, none(), 200, Is("[]")),
        ("GET", "/applications?deleted=1", General, none(), 200, List(DELETED)),
        ("POST", "/applications/app/restore", Entity, none(), 204, Empty),
        ("POST", "/gateways", General, json!({"id": "gw", "frequency_plan": "EU_863_870"}), 201, Members(GATEWAY)),
        ("POST", "/gateways", General, json!({"id": "gw", "frequency_plan": "EU"}), 409, Members("code error")),
        ("GET", "/gateways", General, none(), 200, List(GATEWAY)),
        ("GET", "/gateways/gw", Nobody, none(), 200, Members(PUBLIC)),
        ("GET", "/gateways/gw", Entity, none(), 200, Members(GATEWAY)),
        ("GET", "/gateways/no-gw", Nobody, none(), 404, Members("code error")),
        ("PATCH", "/gateways/gw", Entity, json!({"auto_update": true}), 204, Empty),
        ("GET", "/gateways/gw/token", Entity, none(), 200, Members(TOKEN)),
        ("GET", "/gateways/gw/collaborators", Entity, none(), 200, List(COLLABORATOR)),
        ("PUT", "/gateways/gw/collaborators/bob", Entity, json!(["gateway:status"]), 201, Empty),
        ("PUT for JSON", "/gateways/gw/collaborators/bob", Entity, json!(["gateway:status"]), 201, Is("{}")),
        ("GET", "/gateways/gw/collaborators/bob", Entity, none(), 200, Members(COLLABORATOR)),
        ("DELETE", "/gateways/gw/collaborators/bob", Entity, none(), 204, Empty),
        ("GET", "/gateways/gw/rights", Entity, none(), 200, Texts),
        ("DELETE", "/gateways/gw", Entity, none(), 204, Empty),
        ("POST", "/components/routers", General, json!({"id": "rt"}), 201, Members(COMPONENT)),
        ("GET", "/components", General, none(), 200, List(COMPONENT)),
        ("GET", "/components/routers/rt", Entity, none(), 200, Members(COMPONENT)),
        ("GET", "/components/routers/rt/token", Entity, none(), 200, Members("token expires")),
        ("GET", "/components/routers/rt/rights", Entity, none(), 200, Texts),
        ("GET", "/components/routers/rt/collaborators", Entity, none(), 200, List(COLLABORATOR)),
        (
            "PUT",
            "/components/routers/rt/collaborators/bob",
            Entity,
            json!({"rights": ["component:settings"]}),
            201,
            Empty,
        ),
        (
            "PUT for JSON",
            "/components/routers/rt/collaborators/bob",
            Entity,
            json!({"rights": ["component:settings"]}),
            201,
            Is("{}"),
        ),
        ("GET", "/components/routers/rt/collaborators/bob", Entity, none(), 200, Members(COLLABORATOR)),
        ("DELETE", "/components/routers/rt/collaborators/bob", Entity, none(), 204, Empty),
        ("DELETE", "/components/routers/rt", Entity, none(), 204, Empty),
    ]
}

/// The rows that exist under the prefix only.
fn rows_of_the_api() -> Vec<Row> {
    let new = json!({"name": "cl", "description": "", "uri": "app://callback", "scope": ["apps"]});
    vec![
        ("POST", "/clients", General, new, 201, Members(CLIENT)),
        ("GET", "/clients", General, Value::Null, 200, List(CLIENT)),
        ("GET", "/clients/cl", General, Value::Null, 200, Members(CLIENT)),
        ("PATCH", "/clients/cl", General, json!({"description": "Maps"}), 204, Empty),
        ("DELETE", "/clients/cl", General, Value::Null, 204, Empty),
    ]
}

// Conformance: GET /gateways/{gw_id}/rights
#[tokio::test]
async fn every_endpoint_answers_as_tabled_with_and_without_the_prefix() {
    for (prefix, more) in [("/api/v2", rows_of_the_api()), ("", Vec::new())] {
        for service in Service::start_on_each_store().await {
            let general = service.user("alice").await;
            service.user("bob").await;
            for row in rows().into_iter().chain(more.clone()) {
                walk(&service, prefix, &general, row).await;
            }
        }
    }
}

async fn walk(service: &Service, prefix: &str, general: &str, row: Row) {
    let (method, path, who, body, status, shape) = row;
    let authorization = match who {
        Nobody => String::new(),
        General => general.to_owned(),
        Entity => service.restrict(general, &[&scope_of(path)]).await,
    };
    let (verb, accepted) = match method.strip_suffix(" for JSON") {
        Some(verb) => (verb, "application/json"),
        None => (method, "*/*"),
    };
    let request = service.request(verb, &format!("{prefix}{path}"), &authorization).header("accept", accepted);
    let response = send(if body.is_null() { request } else { request.json(&body) }).await;
    check(&format!("{method} {prefix}{path}"), &response, status, shape);
}

fn scope_of(path: &str) -> String {
    let parts: Vec<_> = path.split('/').collect();
    match parts[1] {
        "applications" => format!("apps:{}", parts[2]),
        "gateways" => format!("gateways:{}", parts[2]),
        _ => format!("components:{}", parts[3]),
    }
}

fn check(row: &str, response: &TestResponse, status: u16, shape: Shape) {
    assert_eq!(response.status, status, "{row}: {response:?}");
    let fits = match shape {
        Empty => response.text.is_empty(),
        Is(text) => response.text == text,
        Eui => response.json().as_str().is_some_and(is_eui),
        Members(names) => has_members(&response.json(), names),
        List(names) => response
            .json()
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(|entry| has_members(entry, names))),
        Texts => response.json().as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string)),
    };
    assert!(fits, "{row}: not {shape:?} but {}", response.text);
}

fn is_eui(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

fn has_members(value: &Value, names: &str) -> bool {
    let Some(members) = value.as_object() else { return false };
    let mut found: Vec<_> = members.keys().map(String::as_str).collect();
    let mut expected: Vec<_> = names.split_whitespace().collect();
    found.sort_unstable();
    expected.sort_unstable();
    found == expected
}
