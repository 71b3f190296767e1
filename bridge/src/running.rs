//! A bridge that runs beside a network, whichever network it is.

use futures::future::BoxFuture;
use server::telemetry::Health;
use tokio::sync::watch;

use crate::receive::report_connections;

/// Connections, by the names of their health checks.
pub type Connections = Vec<(&'static str, Vec<watch::Receiver<bool>>)>;

/// A bridge that publishes, or that compares and publishes nothing.
pub trait Running: Send + Sync {
    /// Returns its connections, and watches whether each is made.
    fn connections(&self) -> &Connections;

    /// Returns the reason why a connection is not made, if that is known.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Finishes the messages in progress, and stops.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Waits until everything is connected.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for connected in self.connections().iter().flat_map(|(_, connected)| connected) {
                // It fails only when the connection's task has ended.
                _ = connected.clone().wait_for(|connected| *connected).await;
            }
        })
    }

    /// Reports connections as health checks.
    fn report_to(&self, health: &Health) {
        self.connections().iter().for_each(|(name, connected)| report_connections(health, name, connected.clone()));
    }
}
