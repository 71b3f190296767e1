//! Idle, slow and surplus connections, and graceful shutdown.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, http::StatusCode, routing::get};
use futures::future::join_all;
use server::{
    ledger::{BudgetSettings, Ledger},
    serve::{Listeners, ServeSettings},
    tls::Tls,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    sync::Notify,
};
use types::Kinded;

use crate::harness::{TestServer, http_client};

fn hello() -> Router {
    Router::new().route("/hello", get(async || "hello"))
}

/// A service whose route reports a request and answers on demand.
fn gated() -> (Router, Arc<Notify>, Arc<Notify>) {
    let (entered, open) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enter, gate) = (Arc::clone(&entered), Arc::clone(&open));
    let wait = async move || {
        enter.notify_one();
        gate.notified().await;
        "done"
    };
    (hello().route("/wait", get(wait)), entered, open)
}

async fn connect(server: &TestServer, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(server.address()).await.unwrap()
}

/// Reads until the server closes the connection.
async fn closed(stream: &mut TcpStream) -> String {
    let mut response = Vec::new();
    // A reset closes it too.
    let _ = stream.read_to_end(&mut response).await;
    String::from_utf8(response).unwrap()
}

#[tokio::test]
async fn an_idle_tls_connection_does_not_block_others() {
    let dir = tempfile::tempdir().unwrap();
    let tls = Tls::self_signed(dir.path(), &[], &server::system::SystemClock).unwrap();
    let server = TestServer::both(hello(), &tls).await;
    let address = server.serving.addresses()[1];
    let _idle = join_all((0..10).map(|_| TcpStream::connect(address))).await;
    let url = format!("https://localhost:{}/hello", address.port());
    let response = http_client(Some(tls.certificate_pem())).get(url).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

// Conformance: Malformed messages, unknown fields, slow and half-open clients
#[tokio::test]
async fn closes_a_connection_that_sends_nothing_or_too_slowly() {
    let server = TestServer::bounded(hello(), ServeSettings { head_timeout_ms: 50, ..ServeSettings::default() }).await;
    for beginning in ["", "P", "PRI * HTTP/2.0\r\n", "GET /hello HTTP/1.1\r\nhost:"] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        assert!(!closed(&mut stream).await.contains("200"), "{beginning}");
    }
}

#[tokio::test]
async fn the_head_timeout_does_not_apply_to_responses() {
    let (router, entered, open) = gated();
    let server = TestServer::bounded(router, ServeSettings { head_timeout_ms: 200, ..ServeSettings::default() }).await;
    let mut slow = TcpStream::connect(server.address()).await.unwrap();
    slow.write_all(b"GET /wait HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    entered.notified().await;
    // When an idle connection is closed, the limit has passed for the other one too.
    assert_eq!(closed(&mut TcpStream::connect(server.address()).await.unwrap()).await, "");
    open.notify_one();
    assert!(closed(&mut slow).await.ends_with("done"));
}

#[tokio::test]
async fn limits_concurrent_connections() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let count = async move || {
        peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        now.fetch_sub(1, Ordering::SeqCst);
        "done"
    };
    let router = Router::new().route("/", get(count));
    let server = TestServer::bounded(router, ServeSettings { connections_max: 2, ..ServeSettings::default() }).await;
    let responses = join_all((0..16).map(async |_| {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        closed(&mut stream).await
    }));
    assert!(responses.await.iter().all(|response| response.ends_with("done")));
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn idle_connections_of_two_addresses_leave_room_for_a_third() {
    let settings = ServeSettings { connections_max: 8, connections_per_address_max: 4, ..ServeSettings::default() };
    let server = TestServer::bounded(hello(), settings).await;
    let mut idle = Vec::new();
    for number in 0..8 {
        let mut stream = connect(&server, [127, 0, 0, 1 + number / 4]).await;
        stream.write_all(b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        // The request was answered, so that the connection counts.
        stream.read_exact(&mut [0; 12]).await.unwrap();
        idle.push(stream);
    }
    let mut newcomer = connect(&server, [127, 0, 0, 3]).await;
    newcomer.write_all(b"GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(closed(&mut newcomer).await.ends_with("hello"));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let large = Router::new().route("/large", get(async || vec![b'x'; 64 << 20]));
    let settings = ServeSettings { unread_timeout_ms: 500, ..ServeSettings::default() };
    let ledger = Ledger::new(&BudgetSettings { response_bytes_per_owner_max: 1 << 27, ..BudgetSettings::default() });
    let server = TestServer::budgeted(large, settings, ledger.clone()).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 12]).await.unwrap();
    assert!(ledger.responses.used() >= 64 << 20, "it is charged");
    while ledger.responses.used() > 0 {
        tokio::task::yield_now().await;
    }
    let mut rest = Vec::new();
    _ = stream.read_to_end(&mut rest).await;
    assert!(rest.len() < 64 << 20, "{} bytes were written", rest.len());
}

#[tokio::test]
async fn shutdown_finishes_running_requests_and_refuses_new_ones() {
    let (router, entered, open) = gated();
    let server = TestServer::plain(router).await;
    let address = server.address();
    let mut idle = TcpStream::connect(address).await.unwrap();
    let running = tokio::spawn(http_client(None).get(server.url("/wait")).send());
    entered.notified().await;
    server.stop.cancel();
    // Idle connections are closed at once, and then the listener is.
    assert_eq!(closed(&mut idle).await, "");
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    open.notify_one();
    assert_eq!(running.await.unwrap().unwrap().text().await.unwrap(), "done");
    server.serving.finished().await;
}

#[tokio::test]
async fn the_drain_timeout_ends_requests_that_do_not_finish() {
    let (router, entered, _open) = gated();
    let server = TestServer::bounded(router, ServeSettings { drain_timeout_ms: 20, ..ServeSettings::default() }).await;
    let running = tokio::spawn(http_client(None).get(server.url("/wait")).send());
    entered.notified().await;
    server.stop.cancel();
    server.serving.finished().await;
    assert!(running.await.unwrap().is_err());
}

#[tokio::test]
async fn an_unusable_address_is_named_with_a_hint() {
    let taken = Listeners::new().plain("127.0.0.1:0").await.unwrap();
    let address = taken.addresses()[0].to_string();
    for (address, hint) in [(address.as_str(), "another program"), ("nonsense", "a host and a port")] {
        let error = Listeners::new().plain(address).await.err().unwrap();
        assert_eq!(error.kind(), types::Kind::Unavailable);
        let text = error.to_string();
        assert!(text.contains(address) && text.contains(hint), "{text}");
    }
}
