//! A running broker that admits every client, an output connected to it, and the parts that other tests need.

pub(crate) mod mqtt_client;
pub(crate) mod recording_output;

use std::{net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use handler::{
    output::{Event, Message, mqtt::MqttOutput},
    sealer::Sealer,
};
use mqtt::{
    Accepted, Authenticator, Broker, BrokerServices, BrokerSettings, DownlinkRefusal, DownlinkSink, PublishedDownlink,
    Refusal, Router,
};
use serde_json::json;
use server::{
    ledger::{BudgetSettings, Ledger},
    seal::{KeyOwner, SealingKeys},
    system::OsRandom,
};
use store::Store;
use testing::{FixedRandom, ManualClock};
use types::{AppId, ApplicationRight, Claims, Clock, Credential, DevEui, Scope, Uplink};

/// Long enough for anything that happens at all; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something that must happen.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} did not happen"))
}

/// Grants every credential the rights to read and to send messages.
struct AllowAll;

#[async_trait]
impl Authenticator for AllowAll {
    async fn authenticate(
        &self,
        app_id: &AppId,
        _credential: &Credential,
        _from: Option<IpAddr>,
    ) -> Result<Claims, Refusal> {
        let rights = [ApplicationRight::MessagesUpRead, ApplicationRight::MessagesDownWrite];
        let claims = serde_json::from_value(json!({
            "iss": "account", "sub": app_id, "type": "application", "iat": 0, "exp": u64::MAX,
            "scope": [Scope::App(app_id.clone())], "apps": { app_id.as_str(): rights },
        }));
        Ok(claims.unwrap())
    }
}

/// Seals the keys in a store.
pub async fn sealer(store: &dyn Store) -> Sealer {
    let keys = SealingKeys::new(KeyOwner::Handler, &[7; 32]).unwrap();
    Sealer::for_store(keys, store, Arc::new(OsRandom)).await.unwrap()
}

/// A broker on a free port.
pub struct Harness {
    pub broker: Broker,
    pub router: Arc<Router>,
}

/// Takes downlinks and forgets them.
struct NoDownlinks;

#[async_trait]
impl DownlinkSink for NoDownlinks {
    async fn accept(&self, _downlink: PublishedDownlink, _accepted: Accepted<'_>) -> Result<(), DownlinkRefusal> {
        Ok(())
    }
}

pub const APPS: [&str; 2] = ["app-one", "app-two"];

impl Harness {
    pub async fn start() -> Self {
        Self::start_with(router(), Arc::new(NoDownlinks)).await
    }

    pub async fn start_with(router: Arc<Router>, downlinks: Arc<dyn DownlinkSink>) -> Self {
        let settings = BrokerSettings {
            listen: "127.0.0.1:0".to_owned(),
            check_interval_ms: 3_600_000,
            ..BrokerSettings::default()
        };
        let clock: Arc<dyn Clock> = ManualClock::new();
        let services = BrokerServices {
            authenticator: Arc::new(AllowAll),
            downlinks,
            router: router.clone(),
            ledger: Ledger::new(&BudgetSettings::default()),
        };
        let broker = Broker::start(&settings, None, services, &FixedRandom::new([0x5a]), &clock).await.unwrap();
        Self { broker, router }
    }

    pub fn output(&self) -> MqttOutput {
        MqttOutput::new(self.router.clone(), &Default::default())
    }
}

pub fn router() -> Arc<Router> {
    Arc::new(Router::new(ManualClock::new()))
}

/// An event of the device `dev`.
pub fn message(app_id: &str, event: Event) -> Message {
    Message { app_id: app_id.parse().unwrap(), dev_id: "dev".parse().unwrap(), event }
}

/// An uplink of the device `dev`.
pub fn uplink(app_id: &str, counter: u32, fields: Option<&str>) -> Message {
    let uplink = Uplink {
        app_id: app_id.parse().unwrap(),
        dev_id: "dev".parse().unwrap(),
        hardware_serial: DevEui::default(),
        port: 1,
        counter,
        confirmed: false,
        is_retry: false,
        payload_raw: None,
        payload_fields: fields.map(|fields| serde_json::from_str(fields).unwrap()),
        normalized_payload: None,
        metadata: Default::default(),
        attributes: Default::default(),
        revision: 0,
        corrects: String::new(),
    };
    message(app_id, Event::Up(Box::new(uplink)))
}
