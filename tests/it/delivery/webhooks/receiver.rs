//! An HTTP server that receives webhooks, and answers as a test wants.

use std::{
    collections::VecDeque,
    future::pending,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header::LOCATION},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinHandle,
    time::timeout,
};

use crate::harness::MESSAGE_TIMEOUT;

/// A request that was received.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// True if the sender is told that it was received.
    pub(crate) is_taken: bool,
}

/// Answer to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Status(u16),
    /// To the receiver itself.
    Redirect,
    /// Not at all.
    Never,
}

/// An HTTP server on a port of its own, which it keeps when it is started again.
pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Shared,
    received: UnboundedReceiver<Received>,
    serving: Option<JoinHandle<io::Result<()>>>,
    /// Keeps the port from everybody else while nothing listens at it.
    reserved: Option<TcpSocket>,
}

#[derive(Clone)]
struct Shared {
    /// Of the next requests; then all are taken.
    answers: Arc<Mutex<VecDeque<Answer>>>,
    sender: UnboundedSender<Received>,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let (sender, received) = unbounded_channel();
        let shared = Shared { answers: Arc::default(), sender };
        let mut this = Self { address: ([127, 0, 0, 1], 0).into(), shared, received, serving: None, reserved: None };
        this.start_again().await;
        this
    }

    pub(crate) async fn start_again(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let router = Router::new().fallback(receive).with_state(self.shared.clone());
        self.serving = Some(tokio::spawn(async move { axum::serve(listener, router).await }));
        self.reserved = None;
    }

    /// Stops listening: connections are refused.
    pub(crate) async fn stop(&mut self) {
        let serving = self.serving.take().unwrap();
        serving.abort();
        // Until then the port is not free.
        _ = serving.await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(self.address).unwrap();
        self.reserved = Some(socket);
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the answers to the next requests.
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.answers.lock().unwrap().extend(answers);
    }

    /// Takes all requests from now on.
    pub(crate) fn take_all(&self) {
        self.shared.answers.lock().unwrap().clear();
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Received {
        timeout(MESSAGE_TIMEOUT * 2, self.received.recv()).await.expect("no request came").unwrap()
    }

    /// Returns true if there are no requests that the test has not looked at.
    pub(crate) fn is_empty(&self) -> bool {
        self.received.is_empty()
    }
}

async fn receive(State(shared): State<Shared>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let answer = shared.answers.lock().unwrap().pop_front().unwrap_or(Answer::Status(200));
    let text = String::from_utf8(body.to_vec()).unwrap();
    let is_taken = matches!(answer, Answer::Status(200));
    shared.sender.send(Received { method, path: uri.to_string(), headers, text, is_taken }).unwrap();
    match answer {
        Answer::Status(status) => (StatusCode::from_u16(status).unwrap(), "as the test says").into_response(),
        Answer::Redirect => (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/elsewhere")]).into_response(),
        Answer::Never => pending().await,
    }
}
