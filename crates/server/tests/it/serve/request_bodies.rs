//! Requests that wait for their bodies, over each protocol: others are handled meanwhile.

use std::{convert::Infallible, net::IpAddr};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request as Received,
    http::{Request, StatusCode},
    routing::{delete, get, post},
};
use futures::future::BoxFuture;
use server::{
    ledger::{BudgetSettings, Ledger},
    serve::{ServeSettings, run_to_end},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::{mpsc, watch},
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{client::GrpcService, transport::Channel};

use crate::harness::TestServer;

const HALF: &str = "x";

/// A service with a route that reads a body, and how many requests have reached it.
async fn start(settings: ServeSettings) -> (TestServer, watch::Receiver<usize>) {
    let (entered, count) = watch::channel(0);
    let read = async move |request: Received| {
        entered.send_modify(|count| *count += 1);
        match to_bytes(request.into_body(), 100).await {
            Ok(body) => (StatusCode::OK, body.len().to_string()),
            Err(_) => (StatusCode::BAD_REQUEST, String::new()),
        }
    };
    let router = Router::new()
        .route("/read", post(read.clone()))
        .route("/read.Service/Call", post(read))
        .route("/hello", get(async || "hello"));
    (TestServer::bounded(router, settings).await, count)
}

/// Sends a request and half of its body; the future sends the rest, and returns the response's status.
async fn begin(server: &TestServer, protocol: &str, from: IpAddr) -> BoxFuture<'static, u16> {
    match protocol {
        "HTTP/1" => begin_http1(server, from).await,
        "HTTP/2" => begin_http2(server, Request::post("/read"), from).await,
        _ => {
            let head = Request::post("/read.Service/Call").header("content-type", "application/grpc");
            begin_http2(server, head, from).await
        }
    }
}

async fn begin_http1(server: &TestServer, from: IpAddr) -> BoxFuture<'static, u16> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(server.address()).await.unwrap();
    let head = "POST /read HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n";
    stream.write_all(format!("{head}{HALF}").as_bytes()).await.unwrap();
    Box::pin(async move {
        stream.write_all(HALF.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response.split(' ').nth(1).unwrap().parse().unwrap()
    })
}

async fn begin_http2(server: &TestServer, head: axum::http::request::Builder, from: IpAddr) -> BoxFuture<'static, u16> {
    let (parts, body) = mpsc::unbounded_channel::<Result<&str, Infallible>>();
    parts.send(Ok(HALF)).unwrap();
    let request = head.body(tonic::body::Body::new(Body::from_stream(UnboundedReceiverStream::new(body)))).unwrap();
    let endpoint = Channel::from_shared(server.url("")).unwrap().local_address(Some(from));
    let mut channel = endpoint.connect().await.unwrap();
    std::future::poll_fn(|context| GrpcService::<tonic::body::Body>::poll_ready(&mut channel, context)).await.unwrap();
    let response = tokio::spawn(GrpcService::call(&mut channel, request));
    Box::pin(async move {
        parts.send(Ok(HALF)).unwrap();
        drop((parts, channel));
        response.await.unwrap().unwrap().status().as_u16()
    })
}

/// The status of a request without a body from another address.
async fn hello(server: &TestServer) -> u16 {
    server::system::install_crypto();
    let client = reqwest::Client::builder().tls_certs_only([]).local_address(IpAddr::from([127, 0, 0, 100]));
    client.build().unwrap().get(server.url("/hello")).send().await.unwrap().status().as_u16()
}

/// Sends the head of a request and a part of its body, and waits for the status of the response.
async fn send_part(server: &TestServer, path: &str, bytes: usize, length: usize) -> u16 {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let head = format!("DELETE {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; bytes]).await.unwrap();
    // The half of the connection that sends is closed, so the rest never comes.
    if bytes < length / 2 {
        stream.shutdown().await.unwrap();
    }
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response.split(' ').nth(1).map_or(0, |status| status.parse().unwrap())
}

/// A service that changes something without reading the body.
async fn start_changing(settings: ServeSettings) -> (TestServer, watch::Receiver<usize>) {
    let (router, changed) = changing();
    (TestServer::bounded(router, settings).await, changed)
}

fn changing() -> (Router, watch::Receiver<usize>) {
    let (change, changed) = watch::channel(0);
    let changing = async move || change.send_modify(|count| *count += 1);
    (run_to_end(Router::new().route("/change", delete(changing)), 10_000_000), changed)
}

/// A ledger with little room for bodies: twice what one address may have.
fn ledger(body_bytes_per_owner_max: u64) -> Ledger {
    let body_bytes_max = 2 * body_bytes_per_owner_max;
    Ledger::new(&BudgetSettings { body_bytes_max, body_bytes_per_owner_max, ..BudgetSettings::default() })
}

#[tokio::test]
async fn a_change_whose_body_does_not_arrive_is_not_made() {
    let (server, changed) = start_changing(ServeSettings::default()).await;
    assert_eq!(send_part(&server, "/change", 3, 3).await, 200);
    assert_ne!(send_part(&server, "/change", 3, 10).await, 200);
    assert_eq!(*changed.borrow(), 1, "half a body came");
}

#[tokio::test]
async fn bodies_that_wait_have_bounded_memory() {
    let (router, changed) = changing();
    let settings = ServeSettings { body_bytes_max: 10_000_000, ..ServeSettings::default() };
    let ledger = ledger(4 * 65_536);
    let server = TestServer::budgeted(router, settings, ledger.clone()).await;
    assert_eq!(send_part(&server, "/change", 5 * 65_536, 5 * 65_536 + 1).await, 429);
    assert_eq!(*changed.borrow(), 0);
    while ledger.bodies.used() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn unfinished_bodies_of_many_addresses_share_a_budget() {
    let (router, changed) = changing();
    let ledger = ledger(1 << 20);
    let server = TestServer::budgeted(router, ServeSettings::default(), ledger.clone()).await;
    let mut begun = Vec::new();
    for address in 1..=20 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((IpAddr::from([127, 0, 0, address]), 0).into()).unwrap();
        let mut stream = socket.connect(server.address()).await.unwrap();
        let head = "DELETE /change HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 500001\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // A refused one may be closed before all of it is sent.
        _ = stream.write_all(&vec![b' '; 500_000]).await;
        begun.push(stream);
    }
    let mut refused = String::new();
    // Those that are refused are answered at once, while the others are awaited.
    begun.pop().unwrap().read_to_string(&mut refused).await.unwrap();
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("bytes of unfinished bodies"), "{refused}");
    assert!(ledger.bodies.used() <= 2 << 20, "{}", ledger.bodies.used());
    drop(begun);
    while ledger.bodies.used() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*changed.borrow(), 0);
}

#[tokio::test]
async fn a_body_is_not_read_without_a_credential() {
    let router = run_to_end(Router::new().route("/secret", delete(async || "done")), 10_000_000);
    let server = TestServer::budgeted(router, ServeSettings::default(), ledger(1 << 20)).await;
    // The rest of the body never comes, and nobody waits for it.
    assert_eq!(send_part(&server, "/secret", 600, 1000).await, 401);
}

#[tokio::test]
async fn requests_that_wait_for_their_bodies_leave_their_places_to_others() {
    // Every place can be taken, and a request that finds none gives up early.
    let settings = ServeSettings { running_max: 4, waiting_timeout_ms: 2000, ..ServeSettings::default() };
    for protocol in ["HTTP/1", "HTTP/2", "gRPC"] {
        let (server, mut entered) = start(settings.clone()).await;
        let mut begun = Vec::new();
        for address in 1..=4 {
            begun.push(begin(&server, protocol, IpAddr::from([127, 0, 0, address])).await);
        }
        tokio::time::timeout(testing::PATIENCE, entered.wait_for(|count| *count == 4)).await.unwrap().unwrap();
        assert_eq!(hello(&server).await, 200, "while bodies are awaited over {protocol}");
        for finish in begun {
            assert_eq!(finish.await, 200, "once its body has come over {protocol}");
        }
    }
}
