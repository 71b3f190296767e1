//! Who may call what: one table of every endpoint and every sort of credential.

use serde_json::{Value, json};
use types::ServiceName;

use crate::service::{Service, bearer};

/// The credentials, in the order of the columns.
const COLUMNS: [&str; 11] = [
    "none",
    "garbage",
    "expired",
    "component",
    "foreign",
    "general",
    "entity",
    "no right",
    "restricted",
    "key",
    "other key",
];

/// Method, path and body of a call, and the status for each of `N` columns.
pub(crate) type Row<const N: usize> = (&'static str, &'static str, Value, [u16; N]);

/// Every endpoint that reads a credential.
///
/// The rows stand in such an order that those which succeed leave everything in place for the next one.
#[rustfmt::skip]
fn table() -> Vec<Row<11>> {
    let key = json!({"name": "new", "rights": ["devices"]});
    let name = json!({"name": "renamed"});
    let create = json!({"id": "my-app", "name": "taken"});
    let rights = json!(["devices"]);
    let exchange = json!({"username": "my-app", "password": "airlock-account.wrong"});
    let restrict = json!({"scope": ["apps:my-app"]});
    vec![
        //                                                none garb  exp comp  for  gen  ent  nor  res  key okey
        ("GET", "/users/me", Value::Null,                [401, 401, 401, 403, 200, 200, 403, 403, 403, 403, 403]),
        ("GET", "/applications", Value::Null,            [401, 401, 401, 403, 200, 200, 403, 403, 403, 403, 403]),
        ("POST", "/applications", create,                [401, 401, 401, 403, 409, 409, 403, 403, 403, 403, 403]),
        ("POST", "/users/restrict-token", restrict,      [401, 401, 401, 403, 403, 200, 403, 403, 403, 403, 403]),
        ("POST", "/applications/token", exchange,        [401, 401, 401, 401, 403, 403, 403, 403, 403, 403, 403]),
        ("GET", "/applications/my-app", Value::Null,     [401, 401, 401, 403, 404, 403, 200, 200, 403, 200, 401]),
        ("GET", "/applications/no-app", Value::Null,     [401, 401, 401, 403, 404, 404, 403, 403, 403, 401, 401]),
        ("GET", "/applications/my-app/rights", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 200, 200, 403, 200, 401]),
        ("GET", "/applications/my-app/euis", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 200, 200, 403, 200, 401]),
        ("PATCH", "/applications/my-app", name,          [401, 401, 401, 403, 404, 403, 204, 403, 403, 403, 403]),
        ("POST", "/applications/my-app/euis", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 201, 403, 403, 403, 403]),
        ("PUT", "/applications/my-app/euis/70B3D57ED0000001", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 204, 403, 403, 403, 403]),
        ("DELETE", "/applications/my-app/euis/70B3D57ED0000001", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 204, 403, 403, 403, 403]),
        ("GET", "/applications/my-app/collaborators", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 200, 403, 403, 403, 403]),
        ("GET", "/applications/my-app/collaborators/alice", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 200, 403, 403, 403, 403]),
        ("PUT", "/applications/my-app/collaborators/carol", rights,
                                                         [401, 401, 401, 403, 404, 403, 201, 403, 403, 403, 403]),
        ("DELETE", "/applications/my-app/collaborators/carol", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 204, 403, 403, 403, 403]),
        ("GET", "/applications/my-app/access-keys", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 200, 403, 403, 403, 403]),
        ("POST", "/applications/my-app/access-keys", key,
                                                         [401, 401, 401, 403, 404, 403, 204, 403, 403, 403, 403]),
        ("GET", "/applications/my-app/access-keys/new", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 200, 403, 403, 403, 403]),
        ("DELETE", "/applications/my-app/access-keys/new", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 204, 403, 403, 403, 403]),
        ("POST", "/applications/my-app/restore", Value::Null,
                                                         [401, 401, 401, 403, 404, 403, 204, 403, 403, 403, 403]),
        ("DELETE", "/applications/my-app", Value::Null,  [401, 401, 401, 403, 404, 403, 204, 403, 403, 403, 403]),
    ]
}

#[tokio::test]
async fn every_endpoint_answers_every_credential_as_the_table_says() {
    for service in Service::start_everywhere().await {
        let credentials = credentials(&service).await;
        check(&service, COLUMNS, &credentials, table()).await;
    }
}

/// Makes every call of a table with every credential.
pub(crate) async fn check<const N: usize>(
    service: &Service,
    columns: [&str; N],
    credentials: &[String],
    table: Vec<Row<N>>,
) {
    for (method, path, body, expected) in table {
        // Those who may not come first: then what they tried shows if it had an effect.
        let mut order: Vec<_> = (0..N).collect();
        order.sort_by_key(|column| (200..300).contains(&expected[*column]));
        for column in order {
            let answer = service.call(method, &at(path), &credentials[column], body.clone()).await;
            assert_eq!(answer.status, expected[column], "{method} {path} with {}: {answer:?}", columns[column]);
            if answer.status.as_u16() >= 400 {
                answer.error();
            }
        }
    }
}

#[tokio::test]
async fn a_token_of_a_key_reads_what_the_key_reads_until_the_key_is_deleted() {
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
async fn tokens_count_only_in_their_header() {
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

fn at(path: &str) -> String {
    if path == "/users/restrict-token" { path.to_owned() } else { format!("/api/v2{path}") }
}

/// A credential for each column, and the application that they are about.
async fn credentials(service: &Service) -> Vec<String> {
    let alice = service.user("alice").await;
    for username in ["bob", "carol", "dave"] {
        service.user(username).await;
    }
    let expired = service.application(&alice, "my-app").await;
    service.pass(3700);
    let general = service.general("alice").await;
    let (foreign, dave) = (service.general("bob").await, service.general("dave").await);
    let entity = service.restrict(&general, &["apps:my-app"]).await;
    let other = service.application(&general, "other-app").await;
    let rights = json!(["messages:up:r"]);
    let path = "/api/v2/applications/my-app/collaborators/dave";
    assert_eq!(service.call("PUT", path, &entity, rights).await.status, 201);
    let no_right = service.restrict(&dave, &["apps:my-app"]).await;
    let key = service.key(&entity, "my-app", "reader", &["messages:up:r"]).await;
    let other_key = service.key(&other, "other-app", "all", &["settings", "delete", "collaborators"]).await;
    let component = service.account.component_token(ServiceName::Handler, &"handler".parse().unwrap()).await.unwrap();
    let garbage = "Bearer e30.e30.AA".to_owned();
    let component = format!("Bearer {}", component.expose());
    let (key, other_key) = (format!("Key {key}"), format!("Key {other_key}"));
    vec![String::new(), garbage, expired, component, foreign, general, entity, no_right, other, key, other_key]
}
