//! Connects clients to the engine in memory. Sockets would take two more file descriptors for each client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::TryFutureExt;
use mqtt5::broker::{
    AuthProvider, BrokerConfig, DynamicStorage, MqttBroker, ResourceMonitor, client_handler::ClientHandler,
    router::MessageRouter, sys_topics::BrokerStats, transport::BrokerTransport,
};
use tokio::{io::DuplexStream, sync::broadcast};
use tokio_util::task::TaskTracker;

use super::stream::{CLIENT_ADDRESS, EngineStream};

/// How much of a client's packets waits in memory, in each direction. Memory is allocated as it is needed.
const STREAM_BYTES_MAX: usize = 8 * 1024;

/// What the engine needs to serve a client.
pub(super) struct Connector {
    config: Arc<BrokerConfig>,
    router: Arc<MessageRouter>,
    auth: Arc<dyn AuthProvider>,
    storage: Option<Arc<DynamicStorage>>,
    stats: Arc<BrokerStats>,
    resources: Arc<ResourceMonitor>,
    tasks: TaskTracker,
    /// Dropped to disconnect all clients; then no more can connect.
    stop: Mutex<Option<broadcast::Sender<()>>>,
}

impl Connector {
    pub(super) fn new(config: BrokerConfig, broker: &MqttBroker, tasks: TaskTracker) -> Self {
        Self {
            config: Arc::new(config),
            router: broker.router(),
            auth: broker.auth_provider(),
            storage: broker.storage(),
            stats: broker.stats(),
            resources: broker.resource_monitor(),
            tasks,
            stop: Mutex::new(Some(broadcast::Sender::new(1))),
        }
    }

    /// Connects a client, which the engine serves until the returned stream is closed. Returns nothing after
    /// [`Self::stop`].
    pub(super) fn connect(&self) -> Option<DuplexStream> {
        let stop = self.sender().as_ref()?.subscribe();
        let (client, engine) = tokio::io::duplex(STREAM_BYTES_MAX);
        let handler = ClientHandler::new(
            BrokerTransport::WebSocket(Box::new(EngineStream(engine))),
            CLIENT_ADDRESS,
            Arc::clone(&self.config),
            Arc::clone(&self.router),
            Arc::clone(&self.auth),
            self.storage.clone(),
            Arc::clone(&self.stats),
            Arc::clone(&self.resources),
            stop,
        );
        // Not in an `async` block, which would keep the place of `handler`.
        self.tasks
            .spawn(handler.run().inspect_err(|error| tracing::debug!(%error, "the MQTT engine ended a connection")));
        Some(client)
    }

    /// Disconnects all clients, and refuses further ones.
    pub(super) fn stop(&self) {
        self.sender().take();
    }

    fn sender(&self) -> MutexGuard<'_, Option<broadcast::Sender<()>>> {
        // No panic can leave it half changed.
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
