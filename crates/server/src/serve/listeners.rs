//! Listeners, their accept loops, and graceful shutdown.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use futures::future::join_all;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream, lookup_host},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Server,
    connection::{Accepted, Connection},
    metrics,
};
use crate::Error;

/// Pause when the process is out of file descriptors; closing connections free some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Number of clients that may wait to be accepted: one that finds no room tries again only after a second. The system
/// may allow less.
const BACKLOG: u32 = 4096;

/// Number of connections accepted before other tasks go on.
const ACCEPTED_TOGETHER: usize = 8;

/// Bound addresses that are not served yet.
#[derive(Default)]
pub struct Listeners {
    listeners: Vec<(TcpListener, Option<Arc<ServerConfig>>)>,
}

/// A running server.
pub struct ServerHandle {
    addresses: Vec<SocketAddr>,
    task: JoinHandle<()>,
}

impl Listeners {
    /// Returns an empty set of listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds an address for plaintext HTTP; port 0 takes a free port.
    pub async fn plain(mut self, address: &str) -> Result<Self, Error> {
        self.listeners.push((bind(address).await?, None));
        Ok(self)
    }

    /// Binds an address for HTTPS; port 0 takes a free port.
    pub async fn tls(mut self, address: &str, config: Arc<ServerConfig>) -> Result<Self, Error> {
        self.listeners.push((bind(address).await?, Some(config)));
        Ok(self)
    }

    /// The addresses, in the order in which they were added.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|(listener, _)| listener.local_addr().ok()).collect()
    }

    pub(super) fn serve(self, router: Router, server: &Server) -> ServerHandle {
        let addresses = self.addresses();
        let drain = Duration::from_millis(server.settings.drain_timeout_ms);
        let connection = Connection::new(router, &server.settings, &server.ledger);
        let task = tokio::spawn(serve_all(self, connection, server.stop.clone(), drain));
        ServerHandle { addresses, task }
    }
}

impl ServerHandle {
    /// The addresses, in the order in which the listeners were added.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits for the stop signal, then for running requests, at most as long as the settings allow.
    pub async fn finished(self) {
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the server failed");
        }
    }
}

/// Binds a TCP listener; port 0 picks a free one.
pub async fn bind(address: &str) -> Result<TcpListener, Error> {
    listen(address).await.map_err(|source| Error::Listen {
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

/// Like [`TcpListener::bind`], but with room for more clients that wait to be accepted.
async fn listen(address: &str) -> io::Result<TcpListener> {
    let mut failure = io::Error::new(io::ErrorKind::AddrNotAvailable, "the host has no address");
    for address in lookup_host(address).await? {
        match listen_at(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Windows, this would let another program take the port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn serve_all(listeners: Listeners, connection: Connection, stop: CancellationToken, drain: Duration) {
    let (graceful, connections, abandon) = (GracefulShutdown::new(), TaskTracker::new(), CancellationToken::new());
    let loops = listeners.listeners.iter().map(async |(listener, tls)| {
        let mut acceptor = Acceptor::new(listener);
        while let Some(accepted) = connection.next(&mut acceptor, &stop).await {
            let connection = connection.clone();
            let (watcher, tls, stop) = (graceful.watcher(), tls.clone(), stop.clone());
            let serve = connection.serve(accepted, tls, watcher, stop);
            connections.spawn(abandon.clone().run_until_cancelled_owned(serve));
        }
    });
    join_all(loops).await;
    // Closed before the wait, so that new clients are refused and can try another server.
    drop(listeners);
    connections.close();
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!(connections = connections.len(), "drain timeout expired: closing the remaining connections");
        abandon.cancel();
    }
    connections.wait().await;
}

impl Connection {
    /// Accepts the next connection that is allowed; none after the stop.
    async fn next(&self, acceptor: &mut Acceptor<'_>, stop: &CancellationToken) -> Option<Accepted> {
        let next = async {
            // The permit comes second: an idle listener must not hold one that another listener needs. At most one
            // connection waits for it here, the rest wait in the system's backlog.
            loop {
                match self.admit(acceptor.accept().await).await {
                    Some(accepted) => return accepted,
                    // Closed without a response, which would cost what the limit saves.
                    None => metrics::connection_closed("address"),
                }
            }
        };
        stop.run_until_cancelled(next).await
    }
}

/// Accepts connections, a few at a time: otherwise, what runs already would wait for all of a crowd at the door.
pub struct Acceptor<'a> {
    listener: &'a TcpListener,
    accepted: usize,
}

impl<'a> Acceptor<'a> {
    /// Accepts the connections of a listener.
    pub fn new(listener: &'a TcpListener) -> Self {
        Self { listener, accepted: 0 }
    }

    /// Accepts the next connection. After a failure, such as too few file descriptors, it pauses and tries again.
    pub async fn accept(&mut self) -> TcpStream {
        self.accepted += 1;
        if self.accepted.is_multiple_of(ACCEPTED_TOGETHER) {
            tokio::task::yield_now().await;
        }
        accept(self.listener).await
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) if is_peer_error(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection: trying again");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Returns true if accepting failed because one peer disconnected, so that the next attempt need not wait.
fn is_peer_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
