//! Accepts connections from clients, up to a limit.

use std::{sync::Arc, time::Duration};

use server::serve::accept;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::task::TaskTracker;

use crate::{connection::Client, context::Context};

/// How long a TLS handshake may take.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// Accepts clients and serves each in a task of its own.
pub(crate) struct Listener {
    pub(crate) context: Context,
    /// One permit per open connection, authenticated or not.
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
}

impl Listener {
    /// Accepts connections until the broker stops.
    pub(crate) async fn accept(self: Arc<Self>, socket: TcpListener, tls: Option<TlsAcceptor>) {
        while let Some(stream) = self.context.stop.run_until_cancelled(accept(&socket)).await {
            self.spawn(stream, tls.clone());
        }
    }

    /// Ends the connections whose credentials are no longer valid.
    pub(crate) async fn check_credentials(&self) {
        let Context { connections, authenticator, router, .. } = &self.context;
        connections.check_credentials(authenticator.as_ref(), router).await;
    }

    fn spawn(self: &Arc<Self>, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Over the limit, the connection is closed without a response, which would cost what the limit saves.
        let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else { return };
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            this.serve(stream, tls).await;
            drop(permit);
        });
    }

    async fn serve(&self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let peer = match stream.set_nodelay(true).and_then(|()| stream.peer_addr()) {
            Ok(peer) => peer.ip(),
            Err(error) => return tracing::debug!(%error, "an MQTT connection broke as it was accepted"),
        };
        match tls {
            None => Client::new(stream).serve(&self.context, peer).await,
            Some(tls) => {
                // In a box, because it is large and over soon.
                if let Some(client) = Box::pin(handshake(tls, stream)).await {
                    client.serve(&self.context, peer).await;
                }
            }
        }
    }
}

async fn handshake(tls: TlsAcceptor, stream: TcpStream) -> Option<Client<TlsStream<TcpStream>>> {
    match timeout(HANDSHAKE_WAIT, tls.accept(stream)).await {
        Ok(Ok(stream)) => return Some(Client::new(stream)),
        Ok(Err(error)) => tracing::debug!(%error, "the TLS handshake with an MQTT client failed"),
        Err(_) => tracing::debug!("the TLS handshake with an MQTT client took too long"),
    }
    None
}
