//! The MQTT engine: routing, sessions and acknowledgements by the `mqtt5` crate.
//!
//! Clients never connect to it directly. The listener authenticates them and passes their packets on through streams in
//! memory; the engine asks [`EngineAuth`] about every subscription, publication and will. Only the handler connects
//! over loopback, with a secret.

mod connector;
mod stream;

use std::{
    future::{Future, ready},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use mqtt5::{
    broker::{
        AuthProvider, AuthResult, BrokerConfig, BrokerShutdownHandle, DynamicStorage, MqttBroker, ResourceLimits,
        StorageBackend, StorageBackendType, StorageConfig, router::MessageRouter,
    },
    packet::connect::ConnectPacket,
    types::ReasonCode,
};
use tokio::io::DuplexStream;
use tokio_util::task::TaskTracker;
use types::Secret;

use self::connector::Connector;
use crate::{
    Error,
    permissions::{self, Permissions},
};

/// The handler's username. It is not a valid application id, so no client can have it.
pub(crate) const HANDLER: &str = "handler:";

/// Maximum size of a packet that the handler may publish, in bytes; clients may send less.
pub const PACKET_BYTES_MAX: usize = 256 * 1024;

/// How long a session outlives its connection at most.
const SESSION_EXPIRY: Duration = Duration::from_secs(3600);

const QUEUE_MESSAGES_MAX: usize = 1000;
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;
const IN_FLIGHT_MAX: u16 = 32;
const SUBSCRIPTIONS_MAX: usize = 20;
const TOPIC_ALIASES_MAX: u16 = 16;
const CONNECTIONS_PER_SECOND_MAX: u32 = 10_000;

pub(crate) struct Engine {
    /// Where the handler connects.
    pub(crate) address: SocketAddr,
    secret: Secret,
    stop: BrokerShutdownHandle,
    router: Arc<MessageRouter>,
    storage: Option<Arc<DynamicStorage>>,
    connector: Connector,
}

impl Engine {
    /// Starts the engine. Clients that know `secret` may log in under any username.
    pub(crate) async fn start(secret: Secret, clients_max: usize, tasks: &TaskTracker) -> Result<Self, Error> {
        let config = config(clients_max);
        let broker = MqttBroker::with_config(config.clone())
            .await
            .map_err(|error| Error::Start(error.into()))?
            .with_auth_provider(Arc::new(EngineAuth { secret: secret.clone() }));
        broker.resource_monitor().update_limits(limits(clients_max));
        let engine = Self {
            address: broker.local_addr().ok_or_else(|| Error::Start("it has no address".into()))?,
            secret,
            stop: broker.shutdown_handle(),
            router: broker.router(),
            storage: broker.storage(),
            connector: Connector::new(config, &broker, tasks.clone()),
        };
        run(broker, tasks).await?;
        Ok(engine)
    }

    /// Connects a client, which the engine serves until the returned stream is closed. Returns nothing after
    /// [`Self::stop`].
    pub(crate) fn connect(&self) -> Option<DuplexStream> {
        self.connector.connect()
    }

    /// The password that the engine accepts.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Deletes a session with its subscriptions and queued messages.
    pub(crate) async fn delete_session(&self, session_id: &str) {
        self.router.unregister_client(session_id).await;
        if let Some(storage) = &self.storage {
            storage.queue_handle(session_id).clear(None);
            if let Err(error) = storage.remove_session(session_id).await {
                tracing::warn!(%error, "cannot delete an MQTT session");
            }
        }
    }

    /// Disconnects all clients, and refuses further ones; the engine's task ends when they are gone, or after 5 s.
    pub(crate) fn stop(&self) {
        self.connector.stop();
        self.stop.shutdown();
    }
}

/// Runs the engine in a task of its own; returns when it is ready.
async fn run(mut broker: MqttBroker, tasks: &TaskTracker) -> Result<(), Error> {
    let mut ready = broker.ready_receiver();
    tasks.spawn(async move {
        if let Err(error) = broker.run().await {
            tracing::error!(%error, "the MQTT engine stopped");
        }
    });
    ready.wait_for(|ready| *ready).await.map(drop).map_err(|_| Error::Start("it stopped at once".into()))
}

fn config(clients_max: usize) -> BrokerConfig {
    let storage = StorageConfig::new()
        .with_backend(StorageBackendType::Memory)
        .with_max_queued_messages_per_client(QUEUE_MESSAGES_MAX)
        .with_max_queued_bytes_per_client(QUEUE_BYTES_MAX);
    let mut config = BrokerConfig::new()
        .with_bind_address(([127, 0, 0, 1], 0))
        .with_max_clients(clients_max)
        .with_session_expiry(SESSION_EXPIRY)
        .with_max_packet_size(PACKET_BYTES_MAX)
        .with_retain_available(false)
        .with_max_subscriptions_per_client(SUBSCRIPTIONS_MAX)
        .with_client_channel_capacity(QUEUE_MESSAGES_MAX)
        .with_max_outbound_inflight(IN_FLIGHT_MAX)
        .with_sys_topics_enabled(false)
        .with_storage(storage);
    config.topic_alias_maximum = TOPIC_ALIASES_MAX;
    config.server_receive_maximum = Some(IN_FLIGHT_MAX);
    config
}

/// No limits per address or client: all clients have the same address here, the handler is one of them, and publish
/// rates are limited before messages reach the engine.
fn limits(clients_max: usize) -> ResourceLimits {
    ResourceLimits {
        max_connections: clients_max,
        max_connections_per_ip: clients_max,
        max_message_rate_per_client: 0,
        max_bandwidth_per_client: 0,
        max_connection_rate: CONNECTIONS_PER_SECOND_MAX,
        rate_limit_window: Duration::from_secs(1),
    }
}

/// Answers the engine's questions about clients. The engine knows a client only by its username, which is the
/// [`Permissions`] as text.
struct EngineAuth {
    secret: Secret,
}

type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl AuthProvider for EngineAuth {
    fn authenticate<'a>(
        &'a self,
        connect: &'a ConnectPacket,
        _address: SocketAddr,
    ) -> EngineFuture<'a, mqtt5::Result<AuthResult>> {
        let secret = self.secret.expose().as_bytes();
        let password = connect.password.as_deref();
        let is_known = password.is_some_and(|password| verify_slices_are_equal(password, secret).is_ok());
        let result = match &connect.username {
            Some(user) if is_known => AuthResult::success_with_user(user.clone()),
            _ => AuthResult::fail(ReasonCode::BadUsernameOrPassword),
        };
        Box::pin(ready(Ok(result)))
    }

    fn authorize_publish<'a>(&'a self, _client: &str, user: Option<&'a str>, topic: &'a str) -> EngineFuture<'a, bool> {
        Box::pin(ready(match user {
            Some(HANDLER) => permissions::handler_may_publish(topic),
            Some(user) => user.parse::<Permissions>().is_ok_and(|permissions| permissions.may_publish(topic)),
            None => false,
        }))
    }

    fn authorize_subscribe<'a>(
        &'a self,
        _client: &str,
        user: Option<&'a str>,
        filter: &'a str,
    ) -> EngineFuture<'a, bool> {
        Box::pin(ready(match user {
            Some(HANDLER) => filter == "+/devices/+/down",
            Some(user) => user.parse::<Permissions>().is_ok_and(|permissions| permissions.may_subscribe(filter)),
            None => false,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn serves_no_client_that_connects_after_it_stopped() {
        let tasks = TaskTracker::new();
        let engine = Engine::start(Secret::new("secret"), 10, &tasks).await.unwrap();
        assert!(engine.connect().is_some());
        engine.stop();
        assert!(engine.connect().is_none());
        tasks.close();
        tasks.wait().await;
    }
}
