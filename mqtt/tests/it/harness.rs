//! A running broker with a fake authenticator.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use mqtt::{Authenticator, Broker, BrokerSettings, Refusal};
use mqtt5::QoS;
use serde_json::json;
use testing::{FixedRandom, ManualClock};
use tokio_rustls::rustls::ServerConfig;
use types::{AppId, ApplicationRight, Claims, Clock, Credential, Scope};

use crate::raw_client::{Login, RawClient};

pub const READ: ApplicationRight = ApplicationRight::MessagesUpRead;
pub const WRITE: ApplicationRight = ApplicationRight::MessagesDownWrite;

/// Waits for something that must happen; fails the test after 20 s.
pub async fn eventually<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}

/// Access keys and their rights. It can be switched to unavailable, like an account service that is down.
#[derive(Default)]
pub struct FakeAuthenticator {
    rights: Mutex<HashMap<(String, String), Vec<ApplicationRight>>>,
    is_unavailable: AtomicBool,
}

impl FakeAuthenticator {
    pub fn grant(&self, app_id: &str, key: &str, rights: &[ApplicationRight]) {
        self.rights.lock().unwrap().insert((app_id.to_owned(), key.to_owned()), rights.to_vec());
    }

    pub fn revoke(&self, app_id: &str, key: &str) {
        self.rights.lock().unwrap().remove(&(app_id.to_owned(), key.to_owned()));
    }

    pub fn set_unavailable(&self, is_unavailable: bool) {
        self.is_unavailable.store(is_unavailable, Ordering::SeqCst);
    }
}

#[async_trait]
impl Authenticator for FakeAuthenticator {
    async fn authenticate(&self, app_id: &AppId, credential: &Credential) -> Result<Claims, Refusal> {
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

/// The same secrets every time, so that they survive a restart of the broker.
pub fn same_bytes() -> FixedRandom {
    FixedRandom::new([0x5a])
}

/// A broker on free ports with `app-one` and `app-two`, each with the keys `account.read`, `.write` and `.both`.
pub struct Harness {
    pub broker: Broker,
    pub authenticator: Arc<FakeAuthenticator>,
    pub clock: Arc<ManualClock>,
}

pub const APPS: [&str; 2] = ["app-one", "app-two"];

impl Harness {
    pub async fn start() -> Self {
        Self::start_with(settings()).await
    }

    pub async fn start_with(settings: BrokerSettings) -> Self {
        let authenticator = Arc::new(FakeAuthenticator::default());
        for app_id in APPS {
            authenticator.grant(app_id, "account.read", &[READ]);
            authenticator.grant(app_id, "account.write", &[WRITE]);
            authenticator.grant(app_id, "account.both", &[READ, WRITE]);
        }
        let clock = ManualClock::new();
        let broker = start_broker(&settings, None, authenticator.clone(), &clock).await;
        Self { broker, authenticator, clock }
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

    /// A client with the handler's own credentials.
    pub async fn handler(&self) -> RawClient {
        let internal = self.broker.internal();
        let login = Login {
            user: Some(internal.username.leak()),
            password: Some(internal.password.expose().to_owned().leak()),
            ..Login::new(4, "", "")
        };
        RawClient::connect(internal.address, &login).await
    }
}

pub async fn start_broker(
    settings: &BrokerSettings,
    tls: Option<Arc<ServerConfig>>,
    authenticator: Arc<FakeAuthenticator>,
    clock: &Arc<ManualClock>,
) -> Broker {
    let clock: Arc<dyn Clock> = clock.clone();
    Broker::start(settings, tls, authenticator, &same_bytes(), &clock).await.unwrap()
}

/// Settings for tests: a free port, and credentials are checked only when a test asks for it.
pub fn settings() -> BrokerSettings {
    BrokerSettings { listen: "127.0.0.1:0".to_owned(), check_interval_ms: 3_600_000, ..BrokerSettings::default() }
}

/// Publishes an uplink of the device `dev`, as the handler does.
pub async fn publish_up(handler: &mut RawClient, app_id: &str, body: &str) {
    handler.send_publish(&format!("{app_id}/devices/dev/up"), body, QoS::AtMostOnce, false).await;
}
