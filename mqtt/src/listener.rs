//! The public side: listens, shakes hands, and keeps strangers from holding up others.

use std::{sync::Arc, time::Duration};

use server::serve::is_of_peer;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{connection, engine::Engine, authenticator::Gate, sessions::Live};

/// How long a TLS handshake may take.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// How long to leave a listener alone that cannot accept, as when there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What every connection shares.
pub(crate) struct Front {
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) live: Arc<Live>,
    pub(crate) engine: Arc<Engine>,
    /// Makes names of sessions unpredictable.
    pub(crate) salt: [u8; 16],
    pub(crate) publishes_per_second_max: u32,
    /// One permit for each connection that may be open, known or not.
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Front {
    /// Accepts connections until the broker stops, each served by a task of its own.
    pub(crate) async fn listen(self: Arc<Self>, listener: TcpListener, tls: Option<TlsAcceptor>) {
        loop {
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.admit(stream, tls.clone()),
                Err(error) if is_of_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "an MQTT connection was not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(self: &Arc<Self>, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Beyond the limit a connection is dropped unheard: an answer would cost what the limit is to save.
        let Ok(permit) = Arc::clone(&self.connections).try_acquire_owned() else { return };
        let front = Arc::clone(self);
        self.tasks.spawn(async move {
            front.serve(stream, tls).await;
            drop(permit);
        });
    }

    async fn serve(&self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "an MQTT connection broke at once");
            return;
        }
        let Some(tls) = tls else { return connection::serve(self, stream).await };
        match timeout(HANDSHAKE_WAIT, tls.accept(stream)).await {
            Ok(Ok(stream)) => connection::serve(self, stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "an MQTT client failed to shake hands"),
            Err(_) => tracing::debug!("an MQTT client took too long to shake hands"),
        }
    }
}
