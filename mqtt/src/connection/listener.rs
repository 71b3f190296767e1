//! Accepts connections from clients, up to a limit.

use std::{collections::HashSet, fmt::Display, sync::Arc, time::Duration};

use futures::Stream;
use server::{ledger::Owner, serve::Acceptor};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;
use types::{AppId, Credential};

use crate::connection::{Client, Peer, context::Context, websocket};

/// Time that the handshake of TLS or WebSocket may take.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// Accepts clients and serves each in a task of its own.
pub(crate) struct Listener {
    pub(crate) context: Context,
    /// One permit per open connection, authenticated or not.
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
}

/// Protocol layers below MQTT.
#[derive(Clone)]
pub(crate) struct Transport {
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) is_websocket: bool,
}

impl Listener {
    /// Accepts connections until the broker stops.
    pub(crate) async fn accept(self: Arc<Self>, socket: TcpListener, transport: Transport) {
        let mut acceptor = Acceptor::new(&socket);
        while let Some(stream) = self.context.stop.run_until_cancelled(acceptor.accept()).await {
            self.spawn(stream, transport.clone());
        }
    }

    /// Ends the connections whose credentials are no longer valid.
    pub(crate) async fn check_credentials(&self, credentials: impl Stream<Item = (AppId, Credential)>) {
        let Context { connections, authenticator, router, .. } = &self.context;
        connections.check(authenticator.as_ref(), router, credentials).await;
    }

    /// The credentials of the applications that are due, and whose clients are connected or have a session.
    pub(crate) fn credentials(&self, is_due: impl Fn(&AppId) -> bool) -> HashSet<(AppId, Credential)> {
        let Context { connections, router, .. } = &self.context;
        let mut credentials = connections.credentials(&is_due);
        credentials.extend(router.credentials_of_absent(&is_due));
        credentials
    }

    fn spawn(self: &Arc<Self>, stream: TcpStream, transport: Transport) {
        let address = match stream.set_nodelay(true).and_then(|()| stream.peer_addr()) {
            Ok(peer) => peer.ip(),
            Err(error) => return tracing::debug!(%error, "an MQTT connection broke as it was accepted"),
        };
        // Over a limit, the connection is closed without a response, which would cost what the limit saves.
        let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else { return };
        let Ok(place) = self.context.connections.budget().charge(&Owner::of_address(address), 1) else { return };
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            this.serve(stream, transport, Peer { address, _place: place }).await;
            drop(permit);
        });
    }

    async fn serve(&self, stream: TcpStream, transport: Transport, peer: Peer) {
        // The handshakes are in boxes, because they are large and over soon.
        match transport.tls {
            None => self.serve_stream(stream, transport.is_websocket, peer).await,
            Some(tls) => {
                if let Some(stream) = Box::pin(handshake("TLS", tls.accept(stream))).await {
                    self.serve_stream(stream, transport.is_websocket, peer).await;
                }
            }
        }
    }

    async fn serve_stream<S>(&self, stream: S, is_websocket: bool, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if !is_websocket {
            return Client::new(stream).serve(&self.context, peer).await;
        }
        if let Some(stream) = Box::pin(handshake("WebSocket", websocket::accept(stream))).await {
            Box::pin(Client::new(stream).serve(&self.context, peer)).await;
        }
    }
}

async fn handshake<S, E: Display>(what: &str, accepted: impl Future<Output = Result<S, E>>) -> Option<S> {
    match timeout(HANDSHAKE_WAIT, accepted).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%error, "the {what} handshake with an MQTT client failed"),
        Err(_) => tracing::debug!("the {what} handshake with an MQTT client took too long"),
    }
    None
}
