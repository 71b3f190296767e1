//! A running discovery service, and clients for it.

use std::{collections::BTreeMap, sync::Arc};

use airlock_discovery::{Discovery, Settings};
use api::discovery::{
    Announcement, Metadata, MetadataRequest, discovery_client::DiscoveryClient as Stub, metadata::Metadata as Served,
};
use client::{Trust, account::AccountClient, discovery::DiscoveryClient};
use server::{
    audit::AuditLog,
    auth::{AuthSettings, Authenticator},
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server},
    system::OsRandom,
    telemetry::{Health, TelemetrySettings},
};
use store::Embedded;
use testing::ManualClock;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, transport::Channel};
use types::Credential;

use crate::account::{Account, ISSUER};

/// A discovery service that stops when dropped.
pub(crate) struct TestDiscovery {
    pub(crate) account: Account,
    pub(crate) address: String,
    pub(crate) store: Arc<Embedded>,
    _stop: DropGuard,
}

impl TestDiscovery {
    pub(crate) async fn start() -> Self {
        Self::with(&Settings::default()).await
    }

    pub(crate) async fn with(settings: &Settings) -> Self {
        Self::on(settings, Listeners::new().plain("127.0.0.1:0").await.unwrap()).await
    }

    pub(crate) async fn on(settings: &Settings, listeners: Listeners) -> Self {
        Self::audited(settings, listeners, &TelemetrySettings::default()).await
    }

    /// Starts it with an audit file.
    pub(crate) async fn audited(settings: &Settings, listeners: Listeners, telemetry: &TelemetrySettings) -> Self {
        let account = Account::start().await;
        let client = AccountClient::new(&account.url).unwrap();
        let clock = ManualClock::new();
        let issuers = BTreeMap::from([(ISSUER.to_owned(), client.into())]);
        let authenticator = Authenticator::new(issuers, None, AuthSettings::default(), clock.clone());
        let store = Arc::new(Embedded::in_memory(clock.for_store()).unwrap());
        let audit = AuditLog::open(telemetry, clock.clone()).unwrap();
        let discovery = Discovery::open(settings, store.clone(), Arc::new(authenticator), clock, audit);

        let stop = CancellationToken::new();
        let server = Server::new(Default::default(), Arc::new(OsRandom), stop.clone());
        let router = discovery.router(&Health::default()).unwrap();
        let service = HttpService::new("discovery", router, ErrorFormat::GrpcGateway);
        let handle = server.start(service, listeners);
        Self { account, address: handle.addresses()[0].to_string(), store, _stop: stop.drop_guard() }
    }

    /// Starts it with components that have announced themselves.
    pub(crate) async fn with_components(components: &[(&str, &str)]) -> Self {
        let discovery = Self::start().await;
        for (service, id) in components {
            let Credential::Token(token) = discovery.account.component(service, id) else { unreachable!() };
            discovery.client().announce(&token, announcement(service, id)).await.unwrap();
        }
        discovery
    }

    pub(crate) fn client(&self) -> DiscoveryClient {
        DiscoveryClient::connect(&self.address, &Trust::Plaintext).unwrap()
    }

    /// The generated client, for requests that the real one never sends.
    pub(crate) async fn stub(&self) -> Stub<Channel> {
        Stub::connect(format!("http://{}", self.address)).await.unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// Any key: discovery verifies nothing with it.
pub(crate) const PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";

pub(crate) fn announcement(service: &str, id: &str) -> Announcement {
    Announcement {
        id: id.into(),
        service_name: service.into(),
        description: format!("The {service} {id}"),
        net_address: "localhost:1904".into(),
        api_address: "http://localhost:8084".into(),
        mqtt_address: "localhost:1883".into(),
        public_key: PUBLIC_KEY.into(),
        ..Default::default()
    }
}

/// A request with a credential, as v2 clients send it.
pub(crate) fn request<T>(message: T, credential: Option<&Credential>) -> Request<T> {
    let mut request = Request::new(message);
    match credential {
        Some(Credential::Token(token)) => request.metadata_mut().insert("token", token.expose().parse().unwrap()),
        Some(Credential::Key(key)) => request.metadata_mut().insert("key", key.expose().parse().unwrap()),
        None => None,
    };
    request
}

pub(crate) fn serves(service: &str, id: &str, served: Served) -> MetadataRequest {
    let metadata = Some(Metadata { metadata: Some(served) });
    MetadataRequest { id: id.into(), service_name: service.into(), metadata }
}
