//! Listeners, the loops that accept from them, and the end of both.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use futures::future::join_all;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::connection::{Connection, Limits};
use crate::Error;

/// How long to wait when the system has no more descriptors: connections that end give some back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Addresses that are listened on, but not served yet.
#[derive(Default)]
pub struct Listeners {
    listeners: Vec<(TcpListener, Option<Arc<ServerConfig>>)>,
}

/// A service that is being served.
pub struct Serving {
    addresses: Vec<SocketAddr>,
    task: JoinHandle<()>,
}

impl Listeners {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens for plain HTTP; port 0 takes a free one.
    pub async fn plain(mut self, address: &str) -> Result<Self, Error> {
        self.listeners.push((bind(address).await?, None));
        Ok(self)
    }

    /// Listens for HTTP over TLS; port 0 takes a free one.
    pub async fn tls(mut self, address: &str, config: Arc<ServerConfig>) -> Result<Self, Error> {
        self.listeners.push((bind(address).await?, Some(config)));
        Ok(self)
    }

    /// Where they listen, in the order in which they were added.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|(listener, _)| listener.local_addr().ok()).collect()
    }

    pub(super) fn serve(self, router: Router, limits: Limits, stop: CancellationToken, drain: Duration) -> Serving {
        let addresses = self.addresses();
        let task = tokio::spawn(serve_all(self, Connection::new(router, limits), stop, drain));
        Serving { addresses, task }
    }
}

impl Serving {
    /// Where it is served, in the order in which the listeners were added.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits for the stop, and then for the requests that run, for as long as the settings allow.
    pub async fn finished(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "a listener ended by itself");
        }
    }
}

async fn bind(address: &str) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen {
        address: address.to_owned(),
        hint: match source.kind() {
            io::ErrorKind::AddrInUse => "another program listens there: stop it, or set another address",
            io::ErrorKind::PermissionDenied => "ports below 1024 need permission: set a higher one",
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address: set one that it has",
            _ => "it must be a host and a port, such as 127.0.0.1:8080",
        },
        source,
    })
}

async fn serve_all(listeners: Listeners, connection: Connection, stop: CancellationToken, drain: Duration) {
    let (graceful, connections, abandon) = (GracefulShutdown::new(), TaskTracker::new(), CancellationToken::new());
    let loops = listeners.listeners.iter().map(async |(listener, tls)| {
        while let Some((stream, permit)) = connection.next(listener, &stop).await {
            let connection = connection.clone();
            let (watcher, tls, stop) = (graceful.watcher(), tls.clone(), stop.clone());
            connections.spawn(abandon.clone().run_until_cancelled_owned(async move {
                let _permit = permit;
                connection.serve(stream, tls, watcher, stop).await;
            }));
        }
    });
    join_all(loops).await;
    // Closed before the wait, so that whoever connects from now on is refused and goes elsewhere.
    drop(listeners);
    connections.close();
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!(connections = connections.len(), "the time to finish is over: cutting what still runs");
        abandon.cancel();
    }
    connections.wait().await;
}

impl Connection {
    /// The next connection and its permit; none once there is to be no more.
    async fn next(
        &self,
        listener: &TcpListener,
        stop: &CancellationToken,
    ) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
        let next = async {
            // The permit second: a listener that nobody calls must not keep one from another. What waits for it is one
            // connection; the rest stays in the system's queue.
            let stream = accept(listener).await;
            Some((stream, self.permit().await?))
        };
        stop.run_until_cancelled(next).await.flatten()
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_of_peer(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection: waiting for others to end");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether a failed accept concerns one peer that is gone already, so that there is no reason to pause.
pub fn is_of_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
