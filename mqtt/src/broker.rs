//! Starts and stops the broker.

use std::{
    hash::{BuildHasher, RandomState},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::{
    ledger::{Ledger, Limits, Resource},
    rate_limit::{LocalRateLimiter, RateLimit},
    serve::bind,
};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use types::{AppId, Clock, Random};

use crate::{
    Authenticator, DownlinkSink, Error, Router,
    connection::{
        connect_limits::ConnectLimits,
        context::Context,
        listener::{Listener, Transport},
        open_connections::OpenConnections,
    },
    metrics,
    session::disconnect::DisconnectReason,
};

/// Time that connections may take to end when the broker stops.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Maximum time that a session outlives its connection.
const SESSION_EXPIRY_MAX: Duration = Duration::from_secs(3600);

/// Number of connections that an owner, or an address whose clients have presented no credential yet, may have even if
/// others have nearly all.
const OWNER_CONNECTIONS_MIN: u64 = 8;

/// Number of parts of the interval in which credentials are checked.
const CHECK_PARTS: u32 = 25;

/// Limit of the events that tell an application of misdirected downlinks: ten at once, then one in ten seconds. In
/// the hour that a session waits for its client, that is less than half of its queue.
const MISDIRECTED: RateLimit = RateLimit::new(10, 360);

/// Interval at which acknowledgements are saved that nobody waits for.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);

/// Interval at which sessions of other processes that are gone are looked for.
const ADOPT_INTERVAL: Duration = Duration::from_secs(3);

/// Interval at which expired sessions are deleted.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

types::settings! {
    /// Settings of the embedded MQTT broker.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct BrokerSettings {
        /// Address for MQTT clients; port 0 picks a free port.
        pub listen: String = "127.0.0.1:1883".to_owned(),
        /// Address for MQTT clients that use TLS; empty for none.
        pub tls_listen: String,
        /// Address for MQTT clients that use WebSocket, as browsers do; empty for none.
        pub websocket_listen: String,
        /// Address for MQTT clients that use WebSocket with TLS; empty for none.
        pub websocket_tls_listen: String,
        /// Maximum number of connections. A fifth of them is for owners that have few.
        pub connections_max: usize = 16_384,
        /// Maximum number of connections of one owner. The more connections all owners have, the less each may have.
        pub connections_per_owner_max: usize = 10_000,
        /// Maximum number of connections of one application.
        pub connections_per_application_max: usize = 50,
        /// Connections that clients may open with one credential of an application.
        // Ten a second, after a burst for all clients of an application that reconnect at once.
        pub connects_per_credential: RateLimit = RateLimit::new(500, 36_000),
        /// Connections that clients without a valid credential may open from one address, or one IPv6 network of 64
        /// bits.
        // A hundred a second: all clients may be behind one address.
        pub connects_per_address: RateLimit = RateLimit::new(10_000, 360_000),
        /// Maximum number of messages per second that a connection may publish; a faster client is slowed down.
        pub publishes_per_second_max: u32 = 100,
        /// Interval at which the credentials of open connections are checked again, in milliseconds.
        pub check_interval_ms: u64 = 2_500,
    }
}

/// Parts of the process that the broker calls.
pub struct BrokerServices {
    /// Checks the credentials of clients.
    pub authenticator: Arc<dyn Authenticator>,
    /// Takes the downlinks that clients publish.
    pub downlinks: Arc<dyn DownlinkSink>,
    /// Brings messages to clients.
    pub router: Arc<Router>,
    /// Counts connections.
    pub ledger: Ledger,
}

/// Listens for MQTT clients until it is shut down.
pub struct Broker {
    address: SocketAddr,
    tls_address: Option<SocketAddr>,
    websocket_address: Option<SocketAddr>,
    websocket_tls_address: Option<SocketAddr>,
    listener: Arc<Listener>,
}

impl Broker {
    /// Starts a broker that admits the clients that `services.authenticator` accepts.
    ///
    /// With `tls` it also listens on [`BrokerSettings::tls_listen`] and [`BrokerSettings::websocket_tls_listen`], if
    /// they are set.
    pub async fn start(
        settings: &BrokerSettings,
        tls: Option<Arc<ServerConfig>>,
        services: BrokerServices,
        random: &dyn Random,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        metrics::describe();
        let tls = tls.map(TlsAcceptor::from);
        let plain = |is_websocket| Some(Transport { tls: None, is_websocket });
        let secure = |is_websocket| Some(Transport { tls: Some(tls.clone()?), is_websocket });
        // All are bound before the first client is accepted.
        let sockets = [
            bind_to(&settings.listen, plain(false)).await?,
            bind_to(&settings.tls_listen, secure(false)).await?,
            bind_to(&settings.websocket_listen, plain(true)).await?,
            bind_to(&settings.websocket_tls_listen, secure(true)).await?,
        ];
        let address = |at: usize| sockets.get(at)?.as_ref().map(|(_, _, address)| *address);
        let [plain_address, tls_address, websocket_address, websocket_tls_address] = std::array::from_fn(address);
        let address = plain_address.ok_or_else(|| Error::Start("broker.listen has no address".into()))?;
        let listener = Arc::new(listener(settings, services, random, clock));
        for (socket, transport, _) in sockets.into_iter().flatten() {
            listener.tasks.spawn(Arc::clone(&listener).accept(socket, transport));
        }
        let every = Duration::from_millis(settings.check_interval_ms.max(1));
        listener.tasks.spawn(check_credentials(Arc::clone(&listener), every));
        listener.tasks.spawn(sweep(Arc::clone(&listener)));
        listener.tasks.spawn(save_changes(Arc::clone(&listener)));
        listener.tasks.spawn(adopt_orphans(Arc::clone(&listener)));
        Ok(Self { address, tls_address, websocket_address, websocket_tls_address, listener })
    }

    /// The address for plain connections.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for TLS connections, if there is one.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls_address
    }

    /// The address for WebSocket connections, if there is one.
    pub fn websocket_address(&self) -> Option<SocketAddr> {
        self.websocket_address
    }

    /// The address for WebSocket connections with TLS, if there is one.
    pub fn websocket_tls_address(&self) -> Option<SocketAddr> {
        self.websocket_tls_address
    }

    /// Writes the metrics of single applications in the text format of Prometheus, as long as the broker runs.
    pub fn application_metrics(&self) -> Arc<dyn Fn() -> String + Send + Sync> {
        let router = Arc::downgrade(&self.listener.context.router);
        Arc::new(move || router.upgrade().map(|router| router.application_metrics()).unwrap_or_default())
    }

    /// Checks the credentials of open connections now, rather than at the next interval.
    pub async fn check_credentials(&self) {
        self.listener.check_credentials(stream::iter(self.listener.credentials(|_| true))).await;
    }

    /// Disconnects all clients. Returns when they are gone, or after 10 s.
    pub async fn shutdown(self) {
        self.listener.context.stop.cancel();
        self.listener.context.router.end_all(DisconnectReason::Stopping);
        self.listener.tasks.close();
        if timeout(STOP_WAIT, self.listener.tasks.wait()).await.is_err() {
            tracing::warn!(
                connections = self.listener.context.connections.count(),
                "MQTT connections did not end in time"
            );
        }
        if timeout(STOP_WAIT, self.listener.context.router.save_all()).await.is_err() {
            tracing::warn!("the sessions of MQTT clients could not be stored in time: messages may be sent again");
        }
    }
}

/// Binds an address for a transport, unless one of them is missing; `broker.listen` may not be empty.
async fn bind_to(
    address: &str,
    transport: Option<Transport>,
) -> Result<Option<(TcpListener, Transport, SocketAddr)>, Error> {
    let is_optional = transport.as_ref().is_none_or(|transport| transport.tls.is_some() || transport.is_websocket);
    let Some(transport) = transport.filter(|_| !(is_optional && address.is_empty())) else { return Ok(None) };
    let socket = bind(address).await?;
    let bound = socket.local_addr().map_err(|error| Error::Start(error.into()))?;
    Ok(Some((socket, transport, bound)))
}

fn listener(
    settings: &BrokerSettings,
    services: BrokerServices,
    random: &dyn Random,
    clock: &Arc<dyn Clock>,
) -> Listener {
    let BrokerServices { authenticator, downlinks, router, ledger } = services;
    let context = Context {
        authenticator,
        downlinks,
        router,
        connect_limits: ConnectLimits::new(settings.connects_per_address, settings.connects_per_credential, clock),
        misdirected: LocalRateLimiter::new("misdirected", MISDIRECTED, Arc::clone(clock)),
        connections: Arc::new(open_connections(settings, &ledger)),
        salt: random.array(),
        session_expiry_max: SESSION_EXPIRY_MAX,
        publishes_per_second_max: settings.publishes_per_second_max,
        stop: CancellationToken::new(),
    };
    let connections = Arc::new(Semaphore::new(settings.connections_max.min(Semaphore::MAX_PERMITS)));
    Listener { context, connections, tasks: TaskTracker::new() }
}

/// No connections yet. A fifth of those that there may be is only for owners that have few.
fn open_connections(settings: &BrokerSettings, ledger: &Ledger) -> OpenConnections {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let (all, owner_max) = (count(settings.connections_max), count(settings.connections_per_owner_max));
    let limits = Limits { total: all - all / 5, owner_max, owner_min: OWNER_CONNECTIONS_MIN };
    let budget = ledger.budget(Resource::MqttConnections, limits);
    OpenConnections::new(budget, settings.connections_per_application_max)
}

/// Checks the credentials of open connections once in every interval, until the broker stops. Applications take turns,
/// so that many connections do not make everybody wait at the same moment.
async fn check_credentials(listener: Arc<Listener>, every: Duration) {
    let (hasher, mut ticks) = (RandomState::new(), interval(every / CHECK_PARTS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let parts = stream::unfold((ticks, 0), |(mut ticks, part)| async move {
        ticks.tick().await;
        Some((part, (ticks, (part + 1) % CHECK_PARTS)))
    });
    // The next part does not wait for slow answers to questions about this one.
    let credentials = parts.flat_map(|part| {
        let is_due = |app_id: &AppId| hasher.hash_one(app_id) % u64::from(CHECK_PARTS) == u64::from(part);
        stream::iter(listener.credentials(is_due))
    });
    let forever = listener.check_credentials(credentials);
    _ = listener.context.stop.run_until_cancelled(forever).await;
}

/// Deletes expired sessions at every interval, and charges the owners of the others, until the broker stops.
async fn sweep(listener: Arc<Listener>) {
    let mut ticks = interval(SWEEP_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let forever = async {
        loop {
            ticks.tick().await;
            listener.context.router.sweep();
            listener.context.router.charge_owners().await;
        }
    };
    _ = listener.context.stop.run_until_cancelled(forever).await;
}

/// Saves what clients acknowledged, at every interval, until the broker stops.
async fn save_changes(listener: Arc<Listener>) {
    let mut ticks = interval(SAVE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while listener.context.stop.run_until_cancelled(ticks.tick()).await.is_some() {
        listener.context.router.save_changes();
    }
}

/// Takes over what other processes left behind, at every interval, until the broker stops.
async fn adopt_orphans(listener: Arc<Listener>) {
    let mut ticks = interval(ADOPT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let forever = async {
        loop {
            ticks.tick().await;
            listener.context.router.adopt_orphans().await;
        }
    };
    _ = listener.context.stop.run_until_cancelled(forever).await;
}
