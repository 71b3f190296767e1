//! What tests play on: a running broker, and an account service that says what the test says.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use handler::{
    broker::{Broker, Gate, Refusal, Settings},
    output::{Message, Output, Topic, mqtt::MqttOutput},
    vault::Vault,
};
use server::{
    seal::{Keys as SealKeys, Owner},
    system::OsRandom,
};
use store::Store;
use types::{AppId, ApplicationRight, Claims, Credential, Random, Scope};

/// Long enough for anything that happens at all; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub const READS: ApplicationRight = ApplicationRight::MessagesUpRead;
pub const WRITES: ApplicationRight = ApplicationRight::MessagesDownWrite;

/// Waits for something that must happen.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}

/// Keys and what they may do; can be away like an account service.
#[derive(Default)]
pub struct Keys {
    rights: Mutex<HashMap<(String, String), Vec<ApplicationRight>>>,
    away: AtomicBool,
}

impl Keys {
    pub fn grant(&self, app_id: &str, key: &str, rights: &[ApplicationRight]) {
        self.rights.lock().unwrap().insert((app_id.to_owned(), key.to_owned()), rights.to_vec());
    }

    pub fn revoke(&self, app_id: &str, key: &str) {
        self.rights.lock().unwrap().remove(&(app_id.to_owned(), key.to_owned()));
    }

    pub fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }
}

#[async_trait]
impl Gate for Keys {
    async fn claims(&self, app_id: &AppId, credential: &Credential) -> Result<Claims, Refusal> {
        if self.away.load(Ordering::SeqCst) {
            return Err(Refusal::Unavailable);
        }
        let shown = match credential {
            Credential::Token(token) => token.expose().to_owned(),
            Credential::Key(key) => key.expose().to_owned(),
        };
        let rights = self.rights.lock().unwrap().get(&(app_id.to_string(), shown)).cloned();
        rights.map(|rights| claims(app_id, rights)).ok_or(Refusal::Invalid)
    }
}

fn claims(app_id: &AppId, rights: Vec<ApplicationRight>) -> Claims {
    Claims {
        iss: "account".to_owned(),
        sub: app_id.to_string(),
        kind: "application".to_owned(),
        iat: 0,
        exp: u64::MAX,
        jti: None,
        client: None,
        scope: vec![Scope::App(app_id.clone())],
        interchangeable: false,
        apps: [(app_id.clone(), rights)].into(),
        gateways: Default::default(),
        components: Default::default(),
        username: None,
        email: None,
        created: None,
        name: None,
        valid: None,
        location_public: None,
        status_public: None,
    }
}

/// What closes the keys of devices in a store.
pub async fn vault(store: &dyn Store) -> Vault {
    let keys = SealKeys::new(Owner::Handler, &[7; 32]).unwrap();
    Vault::open(keys, store, Arc::new(OsRandom)).await.unwrap()
}

/// The same bytes every time, so that a broker started again has the same secrets.
pub struct SameBytes;

impl Random for SameBytes {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0x5a);
    }
}

/// A broker on free ports with `app-one` and `app-two`, each with keys `.read`, `.write` and `.both`.
pub struct Stage {
    pub broker: Broker,
    pub keys: Arc<Keys>,
}

pub const APPS: [&str; 2] = ["app-one", "app-two"];

impl Stage {
    pub async fn set() -> Self {
        Self::set_with(settings()).await
    }

    pub async fn set_with(settings: Settings) -> Self {
        let keys = Arc::new(Keys::default());
        for app_id in APPS {
            keys.grant(app_id, "account.read", &[READS]);
            keys.grant(app_id, "account.write", &[WRITES]);
            keys.grant(app_id, "account.both", &[READS, WRITES]);
        }
        let broker = Broker::start(&settings, None, keys.clone(), &SameBytes).await.unwrap();
        Self { broker, keys }
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

    /// The output of a handler, connected.
    pub async fn output(&self) -> MqttOutput {
        let output = MqttOutput::connect(&self.broker.internal(), &Default::default(), Arc::new(SameBytes)).unwrap();
        soon("the output's connection", output.connected()).await;
        output
    }
}

/// Settings of a broker for tests: any free port, and credentials checked only when a test says so.
pub fn settings() -> Settings {
    Settings { listen: "127.0.0.1:0".to_owned(), check_interval_ms: 3_600_000, ..Settings::default() }
}

/// Publishes an uplink of the device `dev` as a handler does.
pub fn publish_up(output: &MqttOutput, app_id: &str, body: &str) {
    output.publish(message(app_id, Topic::Up, body));
}

pub fn message(app_id: &str, topic: Topic, body: &str) -> Message {
    Message {
        app_id: app_id.parse().unwrap(),
        dev_id: "dev".parse().unwrap(),
        topic,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}
