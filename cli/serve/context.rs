//! What every service of a process is built from, and the two services that need nothing else.

use std::{collections::BTreeMap, sync::Arc};

use account::Account;
use anyhow::Context;
use client::account::AccountClient;
use discovery::Discovery;
use handler::sealer::Sealer;
use server::{
    auth::Authenticator,
    identity::Identity,
    reply::Shape,
    seal::{Keys, Owner},
    serve::{Listeners, Server, Serving, Site},
    system::{OsRandom, SystemClock},
    telemetry::{self, Health, Metrics},
    tls::{HTTP_PROTOCOLS, Tls},
};
use store::{Embedded, Redis, Store};
use tokio_util::sync::CancellationToken;
use types::{Clock, Random, Secret, ServiceName};

use super::{certificate::certificate, data_dir::Folder, stack::address, store_socket::Sharing};
use crate::settings::Settings;

/// What every service of a process is built from.
pub(super) struct Ground {
    pub(super) settings: Settings,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) tls: Option<Tls>,
    pub(super) health: Health,
    pub(super) server: Server,
    folder: Folder,
}

impl Ground {
    /// Opens the data folder and the store; both say in one line what is wrong with them.
    pub(super) async fn lay(settings: Settings) -> anyhow::Result<Self> {
        let (clock, random) = (Arc::new(SystemClock), Arc::new(OsRandom));
        let folder = Folder::open(&settings.data_dir)?;
        let store = open_store(&settings, &folder, clock.clone()).await?;
        let tls = certificate(&settings, &folder, clock.as_ref())?;
        let health = Health::default();
        let checked = store.clone();
        health.add("store", move || {
            let store = checked.clone();
            async move { store.check().await.map_err(|error| error.to_string()) }
        });
        let server =
            Server { settings: settings.serve.clone(), random: random.clone(), stop: CancellationToken::new() };
        Ok(Self { settings, store, clock, random, tls, health, server, folder })
    }

    /// Lets an operator's commands ask for the store, where only this process can open it.
    pub(super) fn share(&self) -> Option<Sharing> {
        let is_embedded = self.settings.store.redis.is_none();
        is_embedded.then(|| Sharing::start(&self.folder, &self.store)).flatten()
    }

    /// Starts the account service; also gives the token with which the handler announces itself.
    pub(super) async fn account(&self) -> anyhow::Result<(Serving, Secret)> {
        let keys = Keys::open(Owner::Account, &self.folder.seal(), self.random.as_ref())?;
        let listeners = Listeners::new().plain(&self.settings.listen.account).await?;
        let settings = self.settings.account.clone();
        let account =
            Account::open(settings, keys, self.store.clone(), self.clock.clone(), self.random.clone()).await?;
        let account = account.listening_at(here(&listeners)?.parse()?);
        let token = account.component_token(ServiceName::Handler, &self.settings.handler.id).await?;
        self.folder.give_token(&token)?;
        let site = Site { name: "account", router: account.router(), shape: Shape::Account };
        Ok((self.server.start(site, listeners), token))
    }

    /// Starts the discovery service.
    pub(super) async fn discovery(&self, authenticator: Arc<Authenticator>) -> anyhow::Result<Serving> {
        let discovery =
            Discovery::open(&self.settings.discovery, self.store.clone(), authenticator, self.clock.clone());
        let listen = &self.settings.listen;
        let listeners = self.listeners(&listen.discovery, &listen.discovery_http).await?;
        let site = Site { name: "discovery", router: discovery.router(&self.health)?, shape: Shape::Gateway };
        Ok(self.server.start(site, listeners))
    }

    /// Serves metrics and health.
    pub(super) async fn telemetry(&self, metrics: Metrics) -> anyhow::Result<Serving> {
        let listeners = Listeners::new().plain(&self.settings.telemetry.listen).await?;
        let router = telemetry::router(metrics, self.health.clone());
        Ok(self.server.start(Site { name: "telemetry", router, shape: Shape::Gateway }, listeners))
    }

    /// What checks credentials at the account service.
    pub(super) fn authenticator(&self, token: Option<Secret>) -> anyhow::Result<Authenticator> {
        let mut account = AccountClient::new(&self.settings.client.auth_server)?;
        if let Some(token) = token {
            account = account.exchanging_as_component(token);
        }
        let issuers = BTreeMap::from([(self.settings.account.issuer.clone(), Arc::new(account))]);
        Ok(Authenticator::new(issuers, self.clock.clone()))
    }

    /// The token of a handler that runs without the account service in its process.
    pub(super) fn token(&self) -> anyhow::Result<Option<Secret>> {
        let Some(path) = &self.settings.handler.token_file else { return self.folder.token() };
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some(Secret::new(text.trim())))
    }

    /// What keeps the keys of devices closed; an error when the store was written with another key file.
    pub(super) async fn sealer(&self) -> anyhow::Result<Sealer> {
        let keys = Keys::open(Owner::Handler, &self.folder.handler_seal(), self.random.as_ref())?;
        Ok(Sealer::for_store(keys, self.store.as_ref(), self.random.clone()).await?)
    }

    /// The handler's key pair, which is made on its first start.
    pub(super) fn identity(&self) -> anyhow::Result<Identity> {
        Ok(Identity::load_or_make(&self.folder.identity())?)
    }

    /// Listens for gRPC clients, with TLS unless that is off, and for plain HTTP.
    pub(super) async fn listeners(&self, grpc: &str, http: &str) -> anyhow::Result<Listeners> {
        let listeners = match &self.tls {
            Some(tls) => Listeners::new().tls(grpc, tls.server_config(&HTTP_PROTOCOLS)).await?,
            None => Listeners::new().plain(grpc).await?,
        };
        Ok(listeners.plain(http).await?)
    }

    /// Both addresses of a service with two listeners, for people.
    pub(super) fn shown(&self, serving: &Serving) -> anyhow::Result<String> {
        let kind = if self.tls.is_some() { "gRPC and HTTP with TLS" } else { "gRPC and HTTP" };
        Ok(format!("{} ({kind}), http://{}", address(serving, 0)?, address(serving, 1)?))
    }
}

/// The address that is listened on, as this machine reaches it.
fn here(listeners: &Listeners) -> anyhow::Result<String> {
    let address = *listeners.addresses().first().context("the account service does not listen")?;
    let everywhere = address.ip().is_unspecified();
    Ok(if everywhere { format!("http://localhost:{}", address.port()) } else { format!("http://{address}") })
}

/// The store that the settings name, else the embedded one in the data folder.
pub(super) async fn open_store(
    settings: &Settings,
    folder: &Folder,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn Store>> {
    let clock = store::Clock::new(move || u64::try_from(clock.now().as_millis()).unwrap_or_default());
    Ok(match &settings.store.redis {
        Some(redis) => Arc::new(Redis::connect(redis, clock).await?),
        None => Arc::new(Embedded::open(&folder.store(), clock)?),
    })
}
