//! What the tests stand on: a clock that is set by hand, a counter for randomness, and a running service.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::Router;
use server::{
    reply::Shape,
    serve::{Listeners, Server, Serving, Settings, Site},
    tls::{HTTP_PROTOCOLS, Tls},
};
use tokio_util::sync::CancellationToken;
use types::{Clock, Random, Timestamp};

/// A clock that moves when the test says so.
pub(crate) struct HandClock(AtomicI64);

impl HandClock {
    /// Some time in 2026.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(1_790_000_000_000)))
    }

    pub(crate) fn advance(&self, duration: Duration) {
        self.0.fetch_add(i64::try_from(duration.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn secs(&self) -> u64 {
        self.now().as_secs()
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Random numbers that count up.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Random for Counter {
    fn fill(&self, bytes: &mut [u8]) {
        let number = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        bytes.iter_mut().zip(number).for_each(|(byte, number)| *byte = number);
    }
}

/// A service that runs until it is dropped, or asked to stop.
pub(crate) struct Stage {
    pub(crate) serving: Serving,
    pub(crate) stop: CancellationToken,
}

impl Stage {
    /// Serves plainly, with the default bounds.
    pub(crate) async fn plain(router: Router) -> Self {
        Self::with(router, Settings::default(), Listeners::new().plain("127.0.0.1:0").await.unwrap())
    }

    /// Serves plainly with other bounds.
    pub(crate) async fn bounded(router: Router, settings: Settings) -> Self {
        Self::with(router, settings, Listeners::new().plain("127.0.0.1:0").await.unwrap())
    }

    /// Serves on a plain and a TLS listener.
    pub(crate) async fn both(router: Router, tls: &Tls) -> Self {
        let listeners = Listeners::new().plain("127.0.0.1:0").await.unwrap();
        let listeners = listeners.tls("127.0.0.1:0", tls.server_config(&HTTP_PROTOCOLS)).await.unwrap();
        Self::with(router, Settings::default(), listeners)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.serving.addresses()[0]
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    fn with(router: Router, settings: Settings, listeners: Listeners) -> Self {
        let stop = CancellationToken::new();
        let server = Server { settings, random: Arc::new(Counter::default()), stop: stop.clone() };
        let site = Site { name: "test", router, shape: Shape::Gateway };
        Self { serving: server.start(site, listeners), stop }
    }
}

/// A client that trusts nobody but, if given, this certificate.
pub(crate) fn http_client(certificate_pem: Option<&str>) -> reqwest::Client {
    server::system::install_crypto();
    let trusted = certificate_pem.map(|pem| reqwest::Certificate::from_pem(pem.as_bytes()).unwrap());
    reqwest::Client::builder().tls_certs_only(trusted).build().unwrap()
}
