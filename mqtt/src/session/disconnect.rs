//! Ends connections from outside their tasks.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Reasons for the broker to end a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisconnectReason {
    /// The credential is no longer valid.
    Revoked,
    /// The credential has not been confirmed for too long. It may be again, so the session stays.
    Unconfirmed,
    /// The client has connected again.
    TakenOver,
    /// The broker stops.
    Stopping,
}

/// Ends one connection; the first reason counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disconnect(Arc<(OnceLock<DisconnectReason>, CancellationToken)>);

impl Disconnect {
    pub(crate) fn end(&self, reason: DisconnectReason) {
        let (first, token) = &*self.0;
        _ = first.set(reason);
        token.cancel();
    }

    /// Waits until the connection has to end.
    pub(crate) async fn wait(&self) -> DisconnectReason {
        let (first, token) = &*self.0;
        token.cancelled().await;
        first.get().copied().unwrap_or(DisconnectReason::Stopping)
    }
}
