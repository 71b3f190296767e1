//! A running broker with a fake authenticator.

pub mod gated_store;
pub mod raw_client;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use mqtt::{
    Authenticator, Broker, BrokerServices, BrokerSettings, DownlinkRefusal, DownlinkSink, Durable, Publication,
    PublishedDownlink, Refusal, Router, SessionMemory, Sharing,
};
use serde_json::json;
use server::{
    ledger::{Budget, BudgetSettings, Ledger, Limits, OwnerSource, Owners, Resource},
    rate_limit::RateLimit,
    seal::{KeyOwner, SealingKeys},
};
use store::Store;
use testing::{FixedRandom, ManualClock};
use tokio::sync::{mpsc, watch};
use tokio_rustls::rustls::ServerConfig;
use types::{AppId, ApplicationRight, Claims, Clock, Credential, Scope, UserId};

pub const READ: ApplicationRight = ApplicationRight::MessagesUpRead;
pub const WRITE: ApplicationRight = ApplicationRight::MessagesDownWrite;

/// Waits for something that must happen; fails the test after 20 s.
pub async fn eventually<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}

/// Access keys and their rights. It can be switched to unavailable, like an account service that is down.
#[derive(Default)]
pub struct FakeAuthenticator {
    rights: Mutex<HashMap<(String, String), Vec<ApplicationRight>>>,
    is_unavailable: AtomicBool,
    addresses: Mutex<Vec<IpAddr>>,
}

impl FakeAuthenticator {
    pub fn grant(&self, app_id: &str, key: &str, rights: &[ApplicationRight]) {
        self.rights.lock().unwrap().insert((app_id.to_owned(), key.to_owned()), rights.to_vec());
    }

    pub fn revoke(&self, app_id: &str, key: &str) {
        self.rights.lock().unwrap().remove(&(app_id.to_owned(), key.to_owned()));
    }

    /// Returns the addresses from which credentials were checked.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.addresses.lock().unwrap().clone()
    }

    pub fn set_unavailable(&self, is_unavailable: bool) {
        self.is_unavailable.store(is_unavailable, Ordering::SeqCst);
    }
}

#[async_trait]
impl Authenticator for FakeAuthenticator {
    async fn authenticate(
        &self,
        app_id: &AppId,
        credential: &Credential,
        from: Option<IpAddr>,
    ) -> Result<Claims, Refusal> {
        self.addresses.lock().unwrap().extend(from);
        if self.is_unavailable.load(Ordering::SeqCst) {
            return Err(Refusal::Unavailable("it cannot be checked now".to_owned()));
        }
        let shown = match credential {
            Credential::Token(token) => token.expose().to_owned(),
            Credential::Key(key) => key.expose().to_owned(),
        };
        let rights = self.rights.lock().unwrap().get(&(app_id.to_string(), shown)).cloned();
        rights.map(|rights| claims(app_id, &rights)).ok_or(Refusal::Invalid)
    }
}

fn claims(app_id: &AppId, rights: &[ApplicationRight]) -> Claims {
    serde_json::from_value(json!({
        "iss": "account", "sub": app_id, "type": "application", "iat": 0, "exp": u64::MAX,
        "scope": [Scope::App(app_id.clone())], "apps": { app_id.as_str(): rights },
    }))
    .unwrap()
}

/// Owners of applications.
struct FakeOwners(HashMap<AppId, UserId>);

#[async_trait]
impl OwnerSource for FakeOwners {
    async fn owner_of(&self, app_id: &AppId) -> Option<UserId> {
        self.0.get(app_id).cloned()
    }
}

/// The same secrets every time, so that they survive a restart of the broker.
pub fn same_bytes() -> FixedRandom {
    FixedRandom::new([0x5a])
}

/// A broker on free ports with `app-one` and `app-two`, each with the keys `account.read`, `.write` and `.both`.
pub struct Harness {
    pub broker: Broker,
    pub authenticator: Arc<FakeAuthenticator>,
    pub clock: Arc<ManualClock>,
    pub router: Arc<Router>,
    pub downlinks: Arc<FakeDownlinks>,
}

pub const APPS: [&str; 2] = ["app-one", "app-two"];

impl Harness {
    pub async fn start() -> Self {
        Self::start_with(settings()).await
    }

    pub async fn start_with(settings: BrokerSettings) -> Self {
        let authenticator = authenticator();
        let clock = ManualClock::new();
        let router = Arc::new(Router::new(clock.clone()));
        Self::start_on(router, settings, authenticator, clock).await
    }

    /// A broker whose sessions are in `store`, which other processes use too, with the same clock.
    pub async fn start_stored(
        store: Arc<dyn Store>,
        sharing: Sharing,
        instance: &str,
        process: u64,
        clock: Arc<ManualClock>,
    ) -> Self {
        let keys = SealingKeys::new(KeyOwner::Handler, &[7; 32]).unwrap();
        let durable = Durable::new(store, sharing, instance.to_owned(), process, clock.clone());
        let durable = durable.with_sealing(keys, Arc::new(same_bytes()));
        let memory = SessionMemory::new(
            Ledger::new(&BudgetSettings::default()).queued,
            Arc::new(Owners::unknown(clock.clone())),
        );
        let router = Arc::new(Router::load(durable, memory, clock.clone()).await.unwrap());
        let many = RateLimit::new(100_000, 100_000);
        let settings =
            BrokerSettings { connections_per_application_max: 1000, connects_per_credential: many, ..settings() };
        Self::start_on(router, settings, authenticator(), clock).await
    }

    /// A broker for applications of these owners, with `account.both` as the key of each, whose sessions may take
    /// memory within `limits`.
    pub async fn start_owned(settings: BrokerSettings, owners: &[(&str, &str)], limits: Limits) -> Self {
        let (authenticator, clock) = (authenticator(), ManualClock::new());
        owners.iter().for_each(|(app_id, _)| authenticator.grant(app_id, "account.both", &[READ, WRITE]));
        let source = owners.iter().map(|(app_id, name)| (app_id.parse().unwrap(), user_id(name)));
        let owners = Arc::new(Owners::new(Arc::new(FakeOwners(source.collect())), clock.clone()));
        let memory = SessionMemory::new(Arc::new(Budget::new(Resource::QueuedBytes, limits)), owners);
        let router = Arc::new(Router::new(clock.clone()).with_memory(memory));
        Self::start_on(router, settings, authenticator, clock).await
    }

    async fn start_on(
        router: Arc<Router>,
        settings: BrokerSettings,
        authenticator: Arc<FakeAuthenticator>,
        clock: Arc<ManualClock>,
    ) -> Self {
        let downlinks = Arc::new(FakeDownlinks::new());
        let services = BrokerServices {
            authenticator: authenticator.clone(),
            downlinks: downlinks.clone(),
            router: router.clone(),
            ledger: Ledger::new(&BudgetSettings::default()),
        };
        let broker_clock: Arc<dyn Clock> = clock.clone();
        let broker = Broker::start(&settings, None, services, &same_bytes(), &broker_clock).await.unwrap();
        Self { broker, authenticator, clock, router, downlinks }
    }

    pub fn host(&self) -> String {
        self.broker.address().ip().to_string()
    }

    pub fn port(&self) -> String {
        self.broker.address().port().to_string()
    }

    pub fn address(&self) -> String {
        self.broker.address().to_string()
    }

    /// Returns the value of a metric of an application.
    pub fn application_metric(&self, metric: &str, application: &str) -> Option<u64> {
        let start = format!("airlock_mqtt_application_{metric}{{application=\"{application}\"}} ");
        let text = (self.broker.application_metrics())();
        text.lines().find_map(|line| line.strip_prefix(&start))?.parse().ok()
    }

    /// Publishes uplinks, and gets downlinks.
    pub async fn handler(&self) -> Handler {
        Handler { router: self.router.clone(), downlinks: self.downlinks.clone() }
    }
}

fn authenticator() -> Arc<FakeAuthenticator> {
    let authenticator = Arc::new(FakeAuthenticator::default());
    for app_id in APPS {
        authenticator.grant(app_id, "account.read", &[READ]);
        authenticator.grant(app_id, "account.write", &[WRITE]);
        authenticator.grant(app_id, "account.both", &[READ, WRITE]);
    }
    authenticator
}

/// The handler's side of the broker.
pub struct Handler {
    router: Arc<Router>,
    downlinks: Arc<FakeDownlinks>,
}

impl Handler {
    pub async fn publish(&mut self, topic: &str, body: &str) {
        let app_id = topic.split('/').next().unwrap().parse().unwrap();
        let publication = Publication { topic: topic.to_owned(), payload: body.to_owned().into() };
        self.router.publish(&app_id, [publication]).stored().await.unwrap();
    }

    /// The next downlink that was accepted: its topic and body.
    pub async fn next(&mut self) -> (String, String) {
        let mut accepted = self.downlinks.accepted.1.lock().await;
        let downlink = eventually("a downlink", accepted.recv()).await.unwrap();
        let topic = format!("{}/devices/{}/down", downlink.app_id, downlink.dev_id);
        (topic, String::from_utf8(downlink.body.to_vec()).unwrap())
    }
}

type Accepted =
    (mpsc::UnboundedSender<PublishedDownlink>, tokio::sync::Mutex<mpsc::UnboundedReceiver<PublishedDownlink>>);

/// Takes downlinks, unless a test makes it refuse them, or hold those for the device [`SLOW`].
pub struct FakeDownlinks {
    accepted: Accepted,
    refusal: Mutex<Option<DownlinkRefusal>>,
    is_holding: watch::Sender<bool>,
}

/// A device whose downlinks a test may hold.
pub const SLOW: &str = "slow";

impl FakeDownlinks {
    fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { accepted: (sender, receiver.into()), refusal: Mutex::default(), is_holding: watch::Sender::new(false) }
    }

    /// Makes downlinks for [`SLOW`] wait, or lets them go on.
    pub fn hold(&self, is_holding: bool) {
        self.is_holding.send_replace(is_holding);
    }

    pub fn refuse(&self, refusal: Option<DownlinkRefusal>) {
        *self.refusal.lock().unwrap() = refusal;
    }
}

#[async_trait]
impl DownlinkSink for FakeDownlinks {
    async fn accept(&self, downlink: PublishedDownlink, accepted: mqtt::Accepted<'_>) -> Result<(), DownlinkRefusal> {
        if let Some(refusal) = *self.refusal.lock().unwrap() {
            return Err(refusal);
        }
        if downlink.dev_id.as_str() == SLOW {
            self.is_holding.subscribe().wait_for(|is_holding| !is_holding).await.unwrap();
        }
        accepted();
        self.accepted.0.send(downlink).unwrap();
        Ok(())
    }
}

/// A broker with TLS.
pub async fn start_with_tls(settings: &BrokerSettings, tls: ServerConfig, authenticator: FakeAuthenticator) -> Broker {
    let clock: Arc<dyn Clock> = ManualClock::new();
    let services = BrokerServices {
        authenticator: Arc::new(authenticator),
        downlinks: Arc::new(FakeDownlinks::new()),
        router: Arc::new(Router::new(clock.clone())),
        ledger: Ledger::new(&BudgetSettings::default()),
    };
    Broker::start(settings, Some(Arc::new(tls)), services, &same_bytes(), &clock).await.unwrap()
}

/// Settings for tests: a free port, and credentials are checked only when a test asks for it.
pub fn settings() -> BrokerSettings {
    BrokerSettings { listen: "127.0.0.1:0".to_owned(), check_interval_ms: 3_600_000, ..BrokerSettings::default() }
}

/// Publishes an uplink of the device `dev`, as the handler does.
pub async fn publish_up(handler: &mut Handler, app_id: &str, body: &str) {
    handler.publish(&format!("{app_id}/devices/dev/up"), body).await;
}

/// The id of a user with this name, of at most 12 characters.
fn user_id(name: &str) -> UserId {
    let mut bytes = [0; 12];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    UserId::from_bytes(bytes)
}
