//! The embedded MQTT broker: a front of our own before an engine that nobody else can reach.
//!
//! The front accepts, checks credentials and narrows what clients ask for to their own application; then it relays
//! their packets to the engine on loopback. The engine could take connections from us directly, but only through
//! parts that it does not document, and it has no way to rewrite a filter: `+/devices/+/up` has to mean "of my
//! application" before the engine sees it.
//!
//! It speaks MQTT 3.1.1 and 5, at most and at least once, and retains nothing. A client sends packets of up to 64 KiB,
//! has 20 subscriptions with filters of up to 256 bytes and 8 levels, and comes back to its session within an hour, if
//! it shows the same credential. Up to 1000 messages wait for it there.


use std::{net::SocketAddr, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use types::{AppId, Random, Secret};

use crate::{Error, Endpoint, engine::{self, Engine}, authenticator::Gate, listener::Front, metrics, sessions::Live};

/// How long connections may take to end when the broker stops.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// Connections of the handler itself, beyond those of clients.
const OWN_CONNECTIONS: usize = 16;

/// How the embedded broker listens, and what it allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where MQTT clients connect; port 0 takes a free one.
    pub listen: String,
    /// Where MQTT clients connect with TLS; empty for nowhere.
    pub tls_listen: String,
    /// How many connections there may be.
    pub connections_max: usize,
    /// How many connections an application may have.
    pub connections_per_application_max: usize,
    /// How many messages a connection may publish in a second before it is held up.
    pub publishes_per_second_max: u32,
    /// How often the credentials of open connections are checked again, in milliseconds.
    pub check_interval_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:1883".to_owned(),
            tls_listen: String::new(),
            connections_max: 10_000,
            connections_per_application_max: 50,
            publishes_per_second_max: 100,
            check_interval_ms: 2_500,
        }
    }
}

/// A running broker.
pub struct Broker {
    address: SocketAddr,
    tls_address: Option<SocketAddr>,
    front: Arc<Front>,
}

impl Broker {
    /// Starts a broker that lets in whom `gate` knows.
    ///
    /// With `tls` it also listens where the settings say so. A listener that cannot be opened is an
    /// [`Error::Listen`].
    pub async fn start(
        settings: &Settings,
        tls: Option<Arc<ServerConfig>>,
        gate: Arc<dyn Gate>,
        random: &dyn Random,
    ) -> Result<Self, Error> {
        let (listener, address) = listen(&settings.listen).await?;
        let tls = tls.filter(|_| !settings.tls_listen.is_empty());
        let tls = match tls {
            Some(config) => Some((listen(&settings.tls_listen).await?, TlsAcceptor::from(config))),
            None => None,
        };
        let front = Arc::new(front(settings, gate, random).await?);
        front.tasks.spawn(Arc::clone(&front).listen(listener, None));
        let tls_address = tls.map(|((listener, address), acceptor)| {
            front.tasks.spawn(Arc::clone(&front).listen(listener, Some(acceptor)));
            address
        });
        front.tasks.spawn(check(Arc::clone(&front), Duration::from_millis(settings.check_interval_ms.max(1))));
        Ok(Self { address, tls_address, front })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens with TLS.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls_address
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.front.live.count()
    }

    /// Where and as whom the handler itself connects: it may speak for every device.
    pub fn internal(&self) -> Endpoint {
        Endpoint {
            address: self.front.engine.address.to_string(),
            username: engine::HANDLER.to_owned(),
            password: self.front.engine.secret().clone(),
        }
    }

    /// Ends every connection of an application, and its sessions with them.
    pub fn kick(&self, app_id: &AppId) {
        self.front.live.end(app_id);
    }

    /// Checks the credentials of open connections now, as it does by itself from time to time.
    pub async fn check(&self) {
        self.front.live.check(self.front.gate.as_ref()).await;
    }

    /// Tells clients to go, and returns when they are gone or have had long enough.
    pub async fn shutdown(self) {
        self.front.stop.cancel();
        self.front.engine.stop();
        self.front.tasks.close();
        if timeout(STOP_WAIT, self.front.tasks.wait()).await.is_err() {
            tracing::warn!(connections = self.connections(), "MQTT connections did not end in time");
        }
    }
}

async fn listen(address: &str) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Listen { what: "MQTT clients", address: address.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

async fn front(settings: &Settings, gate: Arc<dyn Gate>, random: &dyn Random) -> Result<Front, Error> {
    let tasks = TaskTracker::new();
    let (mut secret, mut salt) = ([0; 16], [0; 16]);
    random.fill(&mut secret);
    random.fill(&mut salt);
    let secret = Secret::new(format!("{:032x}", u128::from_be_bytes(secret)));
    let engine = Engine::start(secret, settings.connections_max + OWN_CONNECTIONS, &tasks).await?;
    Ok(Front {
        gate,
        live: Arc::new(Live::new(settings.connections_per_application_max)),
        engine: Arc::new(engine),
        salt,
        publishes_per_second_max: settings.publishes_per_second_max,
        connections: Arc::new(Semaphore::new(settings.connections_max.min(Semaphore::MAX_PERMITS))),
        tasks,
        stop: CancellationToken::new(),
    })
}

/// Checks the credentials of open connections from time to time.
async fn check(front: Arc<Front>, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let forever = async {
        loop {
            ticks.tick().await;
            front.live.check(front.gate.as_ref()).await;
        }
    };
    _ = front.stop.run_until_cancelled(forever).await;
}
