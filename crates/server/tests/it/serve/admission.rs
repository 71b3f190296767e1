//! Admission control over real connections: whose requests run, wait, and are refused.

use axum::{
    Router,
    http::HeaderMap,
    routing::{get, post},
};
use client::COMPONENT_HEADER;
use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use reqwest::Response;
use serde_json::{Value, json};
use server::{
    grpc,
    serve::{ServeSettings, run_to_end},
    telemetry::Health,
    usage::Usage,
};
use testing::PATIENCE;
use tokio::{io::AsyncWriteExt, net::TcpSocket, sync::watch};
use tonic::transport::Channel;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use types::Claims;

use crate::harness::{TestServer, http_client};

/// A service with a route that waits for a gate, and takes any token for its caller's name.
struct Gated {
    server: TestServer,
    open: watch::Sender<bool>,
    entered: watch::Receiver<usize>,
}

impl Gated {
    async fn start(settings: ServeSettings) -> Self {
        let (open, gate) = watch::channel(false);
        let (enter, entered) = watch::channel(0);
        let wait = async move |usage: Usage, headers: HeaderMap| {
            authenticate(&usage, &headers);
            enter.send_modify(|count| *count += 1);
            gate.clone().wait_for(|open| *open).await.unwrap();
            "done"
        };
        let hello = async |usage: Usage, headers: HeaderMap| {
            authenticate(&usage, &headers);
            "hello"
        };
        let health = grpc::routes(&Health::default()).unwrap().routes().into_axum_router();
        let changes = run_to_end(Router::new().route("/change", post(wait.clone())), 100);
        let router = Router::new().route("/wait", get(wait)).route("/hello", get(hello)).merge(health).merge(changes);
        let claims = claims("handler-1", "handler");
        Self { server: TestServer::with_component(router, settings, COMPONENT, claims).await, open, entered }
    }

    async fn get(&self, path: &str, from: [u8; 4], token: Option<&str>) -> Response {
        self.try_get(path, from, token).await.unwrap()
    }

    /// Waits until this many requests have begun.
    async fn begun(&self, count: usize) {
        let mut entered = self.entered.clone();
        tokio::time::timeout(PATIENCE, entered.wait_for(|entered| *entered == count)).await.unwrap().unwrap();
    }

    /// Sends a request from this address, with a token if there is one.
    async fn try_get(&self, path: &str, from: [u8; 4], token: Option<&str>) -> reqwest::Result<Response> {
        server::system::install_crypto();
        let client = reqwest::Client::builder().tls_certs_only([]).local_address(Some(from.into())).build().unwrap();
        let request = client.get(self.server.url(path));
        let request = match token {
            Some(token) => request.header("token", token),
            None => request,
        };
        request.send().await
    }
}

/// The next answer, which must come while others wait.
async fn next(answers: &mut FuturesUnordered<impl Future<Output = Response>>) -> Response {
    let answer = tokio::time::timeout(PATIENCE, answers.next()).await;
    answer.expect("a request is answered while others wait").unwrap()
}

fn authenticate(usage: &Usage, headers: &HeaderMap) {
    if let Some(token) = headers.get("token") {
        usage.set_caller(&claims(token.to_str().unwrap(), "user"));
    }
}

fn claims(id: &str, kind: &str) -> Claims {
    serde_json::from_value(json!({"iss": "a", "sub": id, "type": kind, "iat": 0, "exp": 1})).unwrap()
}

/// The token of the only component.
const COMPONENT: &str = "component";

const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

/// Few enough that one caller gets two turns, and two places to wait.
fn few() -> ServeSettings {
    ServeSettings { running_max: 4, waiting_max: 4, ..ServeSettings::default() }
}

#[tokio::test]
async fn a_flood_from_one_address_leaves_turns_for_another() {
    let gated = Gated::start(few()).await;
    let mut flood: FuturesUnordered<_> = (0..10).map(|_| gated.get("/wait", HERE, None)).collect();
    for _ in 0..6 {
        let refused = next(&mut flood).await;
        assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
        let body: Value = serde_json::from_str(&refused.text().await.unwrap()).unwrap();
        assert_eq!(body["code"], 8);
        assert!(body["message"].as_str().unwrap().contains("send fewer at once"), "{body}");
    }
    assert_eq!(*gated.entered.borrow(), 2);
    assert_eq!(gated.get("/hello", ELSEWHERE, None).await.status(), 200);
    gated.open.send(true).unwrap();
    assert!(flood.all(async |answer| answer.status() == 200).await);
    assert_eq!(*gated.entered.borrow(), 4);
}

#[tokio::test]
async fn a_known_caller_does_not_share_its_turns_with_its_address() {
    let gated = Gated::start(few()).await;
    for token in ["alice", "bob"] {
        assert_eq!(gated.get("/hello", HERE, Some(token)).await.status(), 200);
    }
    // Alice floods from two addresses, and has two turns in all.
    let mut flood: FuturesUnordered<_> =
        [HERE, ELSEWHERE].into_iter().cycle().take(10).map(|from| gated.get("/wait", from, Some("alice"))).collect();
    for _ in 0..6 {
        assert_eq!(next(&mut flood).await.status(), 429);
    }
    assert_eq!(*gated.entered.borrow(), 2);
    assert_eq!(gated.get("/hello", HERE, Some("bob")).await.status(), 200);
    gated.open.send(true).unwrap();
    assert!(flood.all(async |answer| answer.status() == 200).await);
}

#[tokio::test]
async fn a_component_does_not_share_its_turns_with_its_address() {
    let gated = Gated::start(few()).await;
    let mut flood: FuturesUnordered<_> = (0..10).map(|_| gated.get("/wait", HERE, None)).collect();
    for _ in 0..6 {
        assert_eq!(next(&mut flood).await.status(), 429);
    }
    let ask = async |token: &str| {
        // It asks about the token of somebody who is not known.
        let request = http_client(None).get(gated.server.url("/hello")).header("token", "alice");
        request.header(COMPONENT_HEADER, token).send().await.unwrap().status().as_u16()
    };
    assert_eq!((ask("another").await, ask(COMPONENT).await), (429, 200));
    gated.open.send(true).unwrap();
    assert!(flood.all(async |answer| answer.status() == 200).await);
}

#[tokio::test]
async fn grpc_gets_resource_exhausted_for_its_caller_and_unavailable_for_all() {
    for (settings, code) in [
        (ServeSettings { tenant_running_max: 1, tenant_waiting_max: 1, ..ServeSettings::default() }, 8),
        (ServeSettings { running_max: 1, waiting_max: 1, ..ServeSettings::default() }, 14),
    ] {
        let gated = Gated::start(settings).await;
        let watch = async {
            let channel = Channel::from_shared(gated.server.url("")).unwrap().connect().await.unwrap();
            let service = String::new();
            let status = HealthClient::new(channel).watch(HealthCheckRequest { service }).await.unwrap_err();
            let retry_after = status.metadata().get("retry-after").unwrap().to_str().unwrap();
            assert_eq!((status.code() as i32, retry_after), (code, "1"));
        };
        // Of three requests, one runs, one waits, and one is refused.
        let mut over_rest: FuturesUnordered<_> = (0..3).map(|_| gated.get("/wait", HERE, None)).collect();
        let status = if code == 8 { 429 } else { 503 };
        assert_eq!(next(&mut over_rest).await.status(), status);
        watch.await;
        gated.open.send(true).unwrap();
        assert!(over_rest.all(async |answer| answer.status() == 200).await);
    }
}

#[tokio::test]
async fn a_probe_is_answered_while_its_address_has_no_room() {
    let settings = ServeSettings { running_max: 1, waiting_max: 1, ..ServeSettings::default() };
    let gated = Gated::start(settings).await;
    let mut flood: FuturesUnordered<_> = (0..3).map(|_| gated.get("/wait", HERE, None)).collect();
    assert_eq!(next(&mut flood).await.status(), 503);
    let channel = Channel::from_shared(gated.server.url("")).unwrap().connect().await.unwrap();
    let request = HealthCheckRequest { service: String::new() };
    HealthClient::new(channel).check(request).await.unwrap();
    gated.open.send(true).unwrap();
    assert!(flood.all(async |answer| answer.status() == 200).await);
}

#[tokio::test]
async fn a_request_does_not_wait_for_ever() {
    let gated =
        Gated::start(ServeSettings { running_max: 1, waiting_timeout_ms: 20, ..ServeSettings::default() }).await;
    let mut both: FuturesUnordered<_> = (0..2).map(|_| gated.get("/wait", HERE, None)).collect();
    let refused = next(&mut both).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    gated.open.send(true).unwrap();
    assert_eq!(next(&mut both).await.status(), 200);
    assert_eq!(gated.get("/hello", HERE, None).await.status(), 200, "the turn was given back");
}

#[tokio::test]
async fn one_address_cannot_take_all_connections() {
    let settings = ServeSettings { connections_per_address_max: 3, ..ServeSettings::default() };
    let gated = Gated::start(settings).await;
    let connect = async |from: [u8; 4]| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        socket.connect(gated.server.address()).await.unwrap()
    };
    let kept = join_all((0..3).map(|_| connect(HERE))).await;
    assert!(gated.try_get("/hello", HERE, None).await.is_err(), "the fourth is closed at once");
    assert_eq!(gated.get("/hello", ELSEWHERE, None).await.status(), 200);
    drop(kept);
    // The server notices a moment later that they have ended.
    while gated.try_get("/hello", HERE, None).await.is_err() {}
}

#[tokio::test]
async fn a_change_without_its_client_keeps_its_turn_until_it_ends() {
    let settings = ServeSettings { tenant_running_max: 1, waiting_timeout_ms: 1000, ..ServeSettings::default() };
    let gated = Gated::start(settings).await;
    let mut client = tokio::net::TcpStream::connect(gated.server.address()).await.unwrap();
    client.write_all(b"POST /change HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    gated.begun(1).await;
    drop(client);
    let mut another: FuturesUnordered<_> = [gated.get("/wait", HERE, None)].into_iter().collect();
    assert_eq!(next(&mut another).await.status(), 503, "the change still runs");
    assert_eq!(*gated.entered.borrow(), 1);
    gated.open.send(true).unwrap();
    assert_eq!(gated.get("/hello", HERE, None).await.status(), 200);
}

/// Everything runs in the thread of this test, so only a list in pieces lets the small request in.
#[tokio::test]
async fn a_small_request_is_answered_before_a_large_list_ends() {
    const ENTRIES: usize = 1_000_000;
    let (begin, mut begun) = watch::channel(false);
    let (answer, answered) = watch::channel(false);
    let list = async move |usage: Usage| {
        let was_first = |number| {
            begin.send_if_modified(|begun| !std::mem::replace(begun, true));
            number + 1 == ENTRIES && *answered.borrow()
        };
        usage.map_in_pieces((0..ENTRIES).collect(), was_first).await.contains(&true).to_string()
    };
    let small = async move || answer.send_replace(true).to_string();
    let server = TestServer::plain(Router::new().route("/list", get(list)).route("/small", get(small))).await;
    let client = http_client(None);
    let list = tokio::spawn(client.get(server.url("/list")).send());
    begun.wait_for(|begun| *begun).await.unwrap();
    client.get(server.url("/small")).send().await.unwrap();
    assert_eq!(list.await.unwrap().unwrap().text().await.unwrap(), "true");
}
