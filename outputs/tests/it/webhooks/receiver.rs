//! An HTTP server that takes messages, refuses them, or does not answer.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
};

use axum::{Router, body::Bytes, extract::State, http::StatusCode};
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

pub(super) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    status: AtomicU16,
    received: Mutex<Vec<Value>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
    is_frozen: watch::Sender<bool>,
}

/// A request that is being answered.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Receiver {
    pub(super) async fn start() -> Self {
        let shared = Shared {
            status: AtomicU16::new(200),
            received: Mutex::default(),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            is_frozen: watch::channel(false).0,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let this = Self { address, shared: Arc::new(shared), serving: Mutex::default() };
        this.serve(listener);
        this
    }

    pub(super) async fn start_again(&self) {
        self.serve(TcpListener::bind(self.address).await.unwrap());
    }

    fn serve(&self, listener: TcpListener) {
        let router = Router::new().fallback(receive).with_state(self.shared.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        *self.serving.lock().unwrap() = Some(serving);
    }

    /// Stops listening: connections are refused.
    pub(super) async fn stop(&self) {
        let serving = self.serving.lock().unwrap().take().unwrap();
        serving.abort();
        // Until then the port is not free.
        _ = serving.await;
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bodies that came, answered or not.
    pub(super) fn received(&self) -> Vec<Value> {
        self.shared.received.lock().unwrap().clone()
    }

    /// Refuses everything for good.
    pub(super) fn refuse(&self) {
        self.shared.status.store(400, Ordering::SeqCst);
    }

    /// Fails on everything.
    pub(super) fn fail(&self) {
        self.shared.status.store(500, Ordering::SeqCst);
    }

    /// Takes everything.
    pub(super) fn take(&self) {
        self.shared.status.store(200, Ordering::SeqCst);
    }

    /// Does not answer.
    pub(super) fn freeze(&self) {
        self.shared.is_frozen.send_replace(true);
    }

    pub(super) fn thaw(&self) {
        self.shared.is_frozen.send_replace(false);
    }

    /// Returns the number of requests that wait for an answer.
    pub(super) fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Returns the largest number of requests that waited at the same time.
    pub(super) fn most_open(&self) -> usize {
        self.shared.most_open.load(Ordering::SeqCst)
    }
}

async fn receive(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    shared.received.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
    let open = shared.open.fetch_add(1, Ordering::SeqCst) + 1;
    let open_request = Open(shared.clone());
    shared.most_open.fetch_max(open, Ordering::SeqCst);
    shared.is_frozen.subscribe().wait_for(|is_frozen| !is_frozen).await.unwrap();
    drop(open_request);
    StatusCode::from_u16(shared.status.load(Ordering::SeqCst)).unwrap()
}
