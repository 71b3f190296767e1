//! The MQTT engine: sessions, routing and acknowledgements, reachable on loopback and only with a secret.
//!
//! Clients never talk to it directly. The front checks who they are and passes on what they send; the engine asks
//! [`Doorman`] about every subscription, publication and will.

use std::{future::Future, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use mqtt5::{
    broker::{
        AuthProvider, AuthResult, BrokerConfig, BrokerShutdownHandle, DynamicStorage, MqttBroker, ResourceLimits,
        StorageBackend, StorageBackendType, StorageConfig, router::MessageRouter,
    },
    packet::connect::ConnectPacket,
    types::ReasonCode,
};
use tokio_util::task::TaskTracker;
use types::{AppId, DevId, Secret};

use crate::scope::Tenant;
use crate::Error;

/// The name of the handler's own client, which no application can have.
pub(crate) const HANDLER: &str = "handler:";

/// The largest packet between the handler and the engine; clients may send less.
pub(crate) const PACKET_BYTES_MAX: usize = 256 * 1024;

/// How long a session outlives its connection at most.
const SESSION_EXPIRY: Duration = Duration::from_secs(3600);

const QUEUE_MESSAGES_MAX: usize = 1000;
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;
const IN_FLIGHT_MAX: u16 = 32;
const SUBSCRIPTIONS_MAX: usize = 20;
const TOPIC_ALIASES_MAX: u16 = 16;
const CONNECTIONS_PER_SECOND_MAX: u32 = 10_000;

/// The running engine.
pub(crate) struct Engine {
    pub(crate) address: SocketAddr,
    secret: Secret,
    stop: BrokerShutdownHandle,
    router: Arc<MessageRouter>,
    storage: Option<Arc<DynamicStorage>>,
}

impl Engine {
    /// Starts it on a free port of the loopback interface; whoever knows `secret` may say who they are.
    pub(crate) async fn start(secret: Secret, clients_max: usize, tasks: &TaskTracker) -> Result<Self, Error> {
        let mut broker = MqttBroker::with_config(config(clients_max))
            .await
            .map_err(|error| Error::Broker(error.into()))?
            .with_auth_provider(Arc::new(Doorman { secret: secret.clone() }));
        broker.resource_monitor().update_limits(limits(clients_max));
        let address = broker.local_addr().ok_or_else(|| Error::Broker("it has no address".into()))?;
        let (stop, router, storage) = (broker.shutdown_handle(), broker.router(), broker.storage());
        tasks.spawn(async move {
            if let Err(error) = broker.run().await {
                tracing::error!(%error, "the MQTT engine stopped");
            }
        });
        Ok(Self { address, secret, stop, router, storage })
    }

    /// What proves to the engine that one may speak for others.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Drops a session with its subscriptions and its queue.
    pub(crate) async fn forget(&self, session: &str) {
        self.router.unregister_client(session).await;
        if let Some(storage) = &self.storage {
            storage.queue_handle(session).clear(None);
            if let Err(error) = storage.remove_session(session).await {
                tracing::warn!(%error, "an MQTT session was not removed");
            }
        }
    }

    /// Tells every client to go; the engine's task ends when they are gone, or after five seconds.
    pub(crate) fn stop(&self) {
        self.stop.shutdown();
    }
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

/// Limits that suit a front: every client has the same address, and the handler's own client is one of them.
///
/// How fast clients may publish is decided before their messages come here.
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

/// Decides for the engine: who is who, and who may do what.
struct Doorman {
    secret: Secret,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl AuthProvider for Doorman {
    fn authenticate<'a>(
        &'a self,
        connect: &'a ConnectPacket,
        _address: SocketAddr,
    ) -> Answer<'a, mqtt5::Result<AuthResult>> {
        let known = connect.password.as_deref().is_some_and(|given| same(given, self.secret.expose().as_bytes()));
        let result = match &connect.username {
            Some(user) if known => AuthResult::success_with_user(user.clone()),
            _ => AuthResult::fail(ReasonCode::BadUsernameOrPassword),
        };
        Box::pin(std::future::ready(Ok(result)))
    }

    fn authorize_publish<'a>(&'a self, _client: &str, user: Option<&'a str>, topic: &'a str) -> Answer<'a, bool> {
        Box::pin(std::future::ready(match user {
            Some(HANDLER) => is_about_device(topic),
            Some(user) => user.parse::<Tenant>().is_ok_and(|tenant| tenant.may_publish(topic)),
            None => false,
        }))
    }

    fn authorize_subscribe<'a>(&'a self, _client: &str, user: Option<&'a str>, filter: &'a str) -> Answer<'a, bool> {
        Box::pin(std::future::ready(match user {
            Some(HANDLER) => filter == "+/devices/+/down",
            Some(user) => user.parse::<Tenant>().is_ok_and(|tenant| tenant.may_subscribe(filter)),
            None => false,
        }))
    }
}

/// Whether a topic is `<app_id>/devices/<dev_id>/…`.
fn is_about_device(topic: &str) -> bool {
    let mut levels = topic.split('/');
    levels.next().is_some_and(|app_id| app_id.parse::<AppId>().is_ok())
        && levels.next() == Some("devices")
        && levels.next().is_some_and(|dev_id| dev_id.parse::<DevId>().is_ok())
        && levels.next().is_some()
}

/// Compares in a time that does not depend on where the difference is.
fn same(given: &[u8], expected: &[u8]) -> bool {
    given.len() == expected.len() && given.iter().zip(expected).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}
