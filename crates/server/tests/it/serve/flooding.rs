//! Flooding over HTTP/2: the connection is closed, and other clients are served meanwhile.

use axum::{
    Router,
    extract::Request,
    routing::{get, post},
};
use testing::Log;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tracing::Level;

use crate::harness::{TestServer, http_client};

/// The number of frames in a flood; far more than a client needs.
const FRAMES: u32 = 20_000;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_HEADERS: u8 = 4;

/// The preface of HTTP/2 clients.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `POST / HTTP/2` to the host `x`, with HPACK's static table.
const REQUEST: [u8; 6] = [0x83, 0x86, 0x84, 0x41, 1, b'x'];

fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), body].concat()
}

/// Returns frame number n of a flood.
type Flood = fn(u32) -> Vec<u8>;

/// Requests that are cancelled at once.
fn rapid_reset(number: u32) -> Vec<u8> {
    let stream = 2 * number + 1;
    [frame(HEADERS, END_HEADERS, stream, &REQUEST), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
}

/// A head that never ends: each frame has another header of 1 kB.
fn endless_head(number: u32) -> Vec<u8> {
    let mut header = vec![0, 4];
    header.extend(format!("{:04x}", number % 0x10000).bytes());
    header.extend([0x7f, 0xe1, 6]);
    header.extend([b'y'; 992]);
    match number {
        0 => frame(HEADERS, 0, 1, &REQUEST),
        _ => frame(CONTINUATION, 0, 1, &header),
    }
}

/// The first frames of that head, then its end.
fn short_head(number: u32) -> Vec<u8> {
    let mut part = endless_head(number);
    part[4] = if number == 3 { END_HEADERS } else { 0 };
    part
}

/// Empty frames of a body.
fn empty_data(number: u32) -> Vec<u8> {
    match number {
        0 => frame(HEADERS, END_HEADERS, 1, &REQUEST),
        _ => frame(DATA, 0, 1, &[]),
    }
}

/// Small parts of a body.
fn small_data(number: u32) -> Vec<u8> {
    match number {
        0 => frame(HEADERS, END_HEADERS, 1, &REQUEST),
        _ => frame(DATA, 0, 1, b"x"),
    }
}

/// Settings, whose acknowledgements the client does not read.
fn settings(_: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100])
}

fn pings(_: u32) -> Vec<u8> {
    frame(PING, 0, 0, &[0; 8])
}

fn window_updates(_: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])
}

/// Sends a flood; returns whether the server closed the connection before the last frame.
async fn is_cut(server: &TestServer, flood: Flood) -> bool {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let drain = tokio::spawn(async move {
        let mut responses = [0; 64 * 1024];
        while reading.read(&mut responses).await.is_ok_and(|count| count > 0) {}
    });
    for number in 0..FRAMES {
        if writing.write_all(&flood(number)).await.is_err() || drain.is_finished() {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn answers_a_head_in_parts() {
    let server = TestServer::plain(Router::new().route("/hello", get(async || "hello"))).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let parts: Vec<u8> = (0..4).flat_map(short_head).collect();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), &parts].concat()).await.unwrap();
    read_until(&mut stream, HEADERS).await;
}

/// A client may send 256 messages ahead of their answers, each in a frame of its own: ours does.
// The runtime has one thread, so that the server logs where this test listens.
#[tokio::test(flavor = "current_thread")]
async fn small_frames_may_wait_unread_until_there_are_too_many() {
    let (log, _logging) = Log::start(Level::INFO);
    let unread = async |request: Request| {
        std::future::pending::<()>().await;
        drop(request);
    };
    let server = TestServer::plain(Router::new().route("/", post(unread))).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let frames: Vec<u8> = (0..=256).flat_map(small_data).collect();
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[]), &frames, &pings(0)].concat()).await.unwrap();
    read_until(&mut stream, PING).await;
    assert!(!log.text().contains("too many frames"), "{}", log.text());
    for number in 257..FRAMES {
        if stream.write_all(&small_data(number)).await.is_err() {
            break;
        }
    }
    log.until("its client sent too many frames").await;
}

/// Reads frames up to the first one of this kind. The connection must stay until then.
async fn read_until(stream: &mut TcpStream, kind: u8) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.expect("the connection stays");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body).await.unwrap();
        if head[3] == kind {
            return;
        }
    }
}

// Conformance: HTTP/2 floods, and request smuggling with two content lengths
#[tokio::test]
async fn cuts_a_flood_and_serves_other_clients_meanwhile() {
    let server = TestServer::plain(Router::new().route("/hello", get(async || "hello"))).await;
    for (name, flood, must_be_cut) in [
        ("rapid reset", rapid_reset as Flood, true),
        ("endless head", endless_head, true),
        ("empty data", empty_data, true),
        ("settings", settings, true),
        ("pings", pings, true),
        ("window updates", window_updates, true),
    ] {
        let served = async {
            for _ in 0..20 {
                let response = http_client(None).get(server.url("/hello")).send().await.unwrap();
                assert_eq!(response.text().await.unwrap(), "hello", "during {name}");
            }
        };
        let (is_cut, ()) = tokio::join!(is_cut(&server, flood), served);
        assert!(is_cut || !must_be_cut, "{name} went on to its end");
    }
}
