//! The account client: requests, responses and retries.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use airlock_client::{
    Error,
    account::{AccountClient, ClientCredentials},
};
use api::rest::account::NewAccessKey;
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response, Uri, header},
    response::IntoResponse,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use types::{ApplicationRight, Credential, Kind, Kinded, Scope, Secret};

/// The requests that the server received.
#[derive(Debug)]
struct Seen {
    line: String,
    authorization: String,
    body: Value,
}

/// A server that gives these responses in turn, repeats the last one, and records requests.
struct Stub {
    client: AccountClient,
    seen: mpsc::UnboundedReceiver<Seen>,
    calls: Arc<AtomicU32>,
}

#[derive(Clone)]
struct Script {
    responses: Arc<Vec<CannedResponse>>,
    calls: Arc<AtomicU32>,
    seen: mpsc::UnboundedSender<Seen>,
}

#[derive(Clone)]
struct CannedResponse {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: String,
}

impl CannedResponse {
    fn new(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string() }
    }

    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl IntoResponse for CannedResponse {
    fn into_response(self) -> axum::response::Response {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(Body::from(self.body)).unwrap()
    }
}

impl Stub {
    async fn start(responses: Vec<CannedResponse>) -> Self {
        let (sender, seen) = mpsc::unbounded_channel();
        let calls = Arc::new(AtomicU32::new(0));
        let script = Script { responses: Arc::new(responses), calls: Arc::clone(&calls), seen: sender };
        let client = AccountClient::new(&serve(Router::new().fallback(response).with_state(script)).await).unwrap();
        Self { client, seen, calls }
    }

    fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn saw(&mut self) -> Seen {
        self.seen.try_recv().unwrap()
    }
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

async fn response(
    State(script): State<Script>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> impl IntoResponse {
    let turn = script.calls.fetch_add(1, Ordering::SeqCst) as usize;
    let authorization = headers.get(header::AUTHORIZATION).map_or("", |value| value.to_str().unwrap()).to_owned();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    script.seen.send(Seen { line: format!("{method} {uri}"), authorization, body }).unwrap();
    script.responses[turn.min(script.responses.len() - 1)].clone()
}

fn credential() -> Credential {
    Credential::Token(Secret::new("t0k3n"))
}

#[tokio::test]
async fn exchanges_a_password_for_a_token() {
    let tokens = json!({"token_type": "bearer", "access_token": "a", "expires_in": 3600, "refresh_token": "r"});
    let mut stub = Stub::start(vec![CannedResponse::new(200, &tokens)]).await;
    let client = ClientCredentials { id: "ttnctl".parse().unwrap(), secret: Secret::new("ttnctl") };
    let scope = [Scope::Apps, Scope::App("my-app".parse().unwrap())];
    let response = stub
        .client
        .password_token(&client, &"alice".parse().unwrap(), &Secret::new("correct horse"), &scope)
        .await
        .unwrap();
    assert_eq!((response.access_token.expose(), response.expires_in), ("a", 3600));

    let seen = stub.saw();
    assert_eq!(seen.line, "POST /users/token");
    assert_eq!(seen.authorization, "Basic dHRuY3RsOnR0bmN0bA==");
    let expected = json!({
        "grant_type": "password", "username": "alice", "password": "correct horse", "scope": ["apps", "apps:my-app"],
    });
    assert_eq!(seen.body, expected);
}

#[tokio::test]
async fn authenticates_the_exchange_of_a_key() {
    let mut stub = Stub::start(vec![CannedResponse::new(200, &json!({"access_token": "a", "expires_in": 60}))]).await;
    let (app_id, key) = ("my-app".parse().unwrap(), "issuer.secret".parse().unwrap());
    stub.client.exchange_key(&app_id, &key).await.unwrap();
    let seen = stub.saw();
    assert_eq!((seen.line.as_str(), seen.authorization.as_str()), ("POST /api/v2/applications/token", ""));
    let body = json!({"grant_type": "password", "username": "my-app", "password": "issuer.secret"});
    assert_eq!(seen.body, body);

    let component = stub.client.clone().exchanging_as_component(Secret::new("c0mp"));
    component.exchange_key(&app_id, &key).await.unwrap();
    assert_eq!(stub.saw().authorization, "Bearer c0mp");
}

#[tokio::test]
async fn a_page_of_users_says_where_the_next_one_starts() {
    let alice = json!({
        "username": "alice", "email": "alice@example.com", "created": "2026-01-01T00:00:00Z", "valid": true,
        "_id": "0102030405060708090a0b0c", "disabled": true,
    });
    let link = |value| CannedResponse::new(200, &json!([alice])).with("link", value);
    let mut stub = Stub::start(vec![
        link("<?search=a%26b&after=alice>; rel=\"next\""),
        link("<?after=alice>; rel=\"prev\""),
        link("<?after=NO%20NAME>; rel=\"next\""),
        link("<?after=alice>; rel=\"next\""),
    ])
    .await;
    let page = stub.client.users(&credential(), "a&b", None).await.unwrap();
    assert_eq!((page.users[0].user.email.as_str(), page.users[0].disabled), ("alice@example.com", true));
    let seen = stub.saw();
    assert_eq!((&seen.line[..], &seen.authorization[..]), ("GET /api/v2/users?search=a%26b", "Bearer t0k3n"));
    let next = page.next.unwrap();
    assert_eq!(next.as_str(), "alice");
    assert!(stub.client.users(&credential(), "", Some(&next)).await.unwrap().next.is_none());
    assert_eq!(stub.saw().line, "GET /api/v2/users?after=alice");
    let error = stub.client.users(&credential(), "", None).await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");
    // An empty query is as good as none.
    assert_eq!(stub.saw().line.trim_end_matches('?'), "GET /api/v2/users");
    assert!(stub.client.users(&credential(), "", Some(&next)).await.unwrap().next.is_none(), "it leads back");
}

#[tokio::test]
async fn escapes_names_in_paths() {
    let mut stub = Stub::start(vec![CannedResponse::new(204, &Value::Null)]).await;
    stub.client.delete_access_key(&credential(), &"my-app".parse().unwrap(), "default key/..?").await.unwrap();
    let seen = stub.saw();
    assert_eq!(seen.line, "DELETE /api/v2/applications/my-app/access-keys/default%20key%2F..%3F");
    assert_eq!(seen.authorization, "Bearer t0k3n");
}

#[tokio::test]
async fn attempts_a_read_three_times_while_the_service_is_unavailable() {
    let stub = Stub::start(vec![
        CannedResponse::new(503, &json!({"error": "starting"})),
        CannedResponse::new(200, &json!([])),
    ])
    .await;
    assert_eq!(stub.client.applications(&credential()).await.unwrap(), []);
    assert_eq!(stub.calls(), 2);

    let stub = Stub::start(vec![CannedResponse::new(503, &json!({"error": "starting"}))]).await;
    let error = stub.client.applications(&credential()).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str(), stub.calls()), (Kind::Unavailable, "starting", 3));
}

// Conformance: Deadlines, and retries that respect `Retry-After`
#[tokio::test]
async fn repeats_a_write_only_after_retry_after() {
    let key = NewAccessKey { name: "k".into(), rights: vec![ApplicationRight::Devices] };
    let app_id = "my-app".parse().unwrap();
    let created = json!({"name": "k", "key": "issuer.secret", "rights": ["devices"]});

    let stub =
        Stub::start(vec![CannedResponse::new(503, &json!({"error": "away"})), CannedResponse::new(201, &created)])
            .await;
    stub.client.add_access_key(&credential(), &app_id, &key).await.unwrap_err();
    assert_eq!(stub.calls(), 1);

    let busy = CannedResponse::new(429, &json!({"error": "slow down"})).with("retry-after", "0");
    let stub = Stub::start(vec![busy, CannedResponse::new(201, &created)]).await;
    let response = stub.client.add_access_key(&credential(), &app_id, &key).await.unwrap();
    assert_eq!((response.key.unwrap().expose(), stub.calls()), ("issuer.secret", 2));
}

#[tokio::test]
async fn does_not_obey_a_long_retry_after() {
    let busy = CannedResponse::new(429, &json!({"code": 429, "error": "slow down"})).with("retry-after", "3600");
    let stub = Stub::start(vec![busy]).await;
    let error = stub.client.me(&credential()).await.unwrap_err();
    let Error::Refused { kind: Kind::Exhausted, retry_after: Some(wait), .. } = error else { panic!("{error:?}") };
    assert_eq!((wait.as_secs(), stub.calls()), (3600, 1));
}

#[tokio::test]
async fn refuses_an_endless_response() {
    async fn endless() -> impl IntoResponse {
        let chunks = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 64 << 10])));
        Body::from_stream(chunks)
    }
    let client = AccountClient::new(&serve(Router::new().fallback(endless)).await).unwrap();
    assert!(matches!(client.keys().await, Err(Error::TooLarge { .. })));
}

#[tokio::test]
async fn does_not_follow_redirects() {
    let stub = Stub::start(vec![CannedResponse::new(307, &json!({})).with("location", "/api/v2/users/me?again")]).await;
    stub.client.me(&credential()).await.unwrap_err();
    assert_eq!(stub.calls(), 1);
}

#[tokio::test]
async fn reports_an_unreadable_response() {
    let client = AccountClient::new(&serve(Router::new().fallback(async || "<html>")).await).unwrap();
    let error = client.keys().await.unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");

    let client = AccountClient::new(&serve(Router::new().fallback(async || Json(json!({"keys": []})))).await).unwrap();
    assert!(client.keys().await.unwrap().keys.is_empty());
}

#[tokio::test]
async fn an_unreachable_service_is_named_without_the_credential() {
    // The listener is closed before the call, so its port refuses connections.
    let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = AccountClient::new(&format!("http://id:hush@{address}")).unwrap();
    let error = client.me(&credential()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    let shown = format!("{error} {error:?}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(!shown.contains("hush") && !shown.contains("t0k3n"), "{shown}");
}
