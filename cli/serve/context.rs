//! Shared state of the services of one process: settings, store, clock, randomness, TLS, health.

mod certificate;
mod component_token;
mod in_process_account;
mod owners;

use std::{
    collections::BTreeMap,
    future::{pending, ready},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use account::{Account, Environment};
use anyhow::Context as _;
use client::{Trust, account::AccountClient, discovery::DiscoveryClient};
use console::Console;
use discovery::Discovery;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use handler::{access::grants::AccountGrants, sealer::Sealer};
use server::{
    audit::AuditLog,
    auth::{Authenticator, ComponentToken, LocalAccount, TokenSource, TrustedAccount},
    error_response::ErrorFormat,
    identity::Identity,
    ledger::{BudgetedStore, Ledger, Owners, ReservedDisk},
    seal::{KeyOwner, SealingKeys},
    serve::{HttpService, Listeners, Server, ServerHandle},
    status::ErrorChain,
    store_mark::{Durability, OlderStore, StoreMark},
    system::OsRandom,
    telemetry::{self, Health, Metrics},
    tls::{HTTP_PROTOCOLS, Tls},
};
use store::{Embedded, Redis, Store, StoreDisk};
use tokio_util::sync::CancellationToken;
use types::{Clock, Random};

use self::{
    certificate::certificate,
    component_token::{OtherAccount, OwnAccount},
    in_process_account::InProcessAccount,
    owners::AccountOwners,
};
use super::{
    console_service,
    data_dir::{DataDir, operator_socket::OperatorSocket, usage_socket},
    local_address::from_here,
};
use crate::{
    services::{codec_service, telemetry::Process},
    settings::Settings,
};

/// Ends when the store fails for good.
pub(super) type StoreFailure = Shared<BoxFuture<'static, Arc<store::Error>>>;

/// A store, with futures for its failure and its end.
pub(super) struct OpenStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) failure: StoreFailure,
    /// Ends when nothing uses the store any more, and its file is free.
    pub(super) closed: BoxFuture<'static, ()>,
    /// The disk of an embedded store.
    disk: Option<StoreDisk>,
}

/// Shared state of the services of one process.
pub(super) struct Context {
    pub(super) settings: Settings,
    /// The store, which refuses what would exceed the budgets of owners.
    pub(super) store: Arc<dyn Store>,
    /// The store of operators, who are refused nothing.
    operators_store: Arc<dyn Store>,
    pub(super) store_failure: StoreFailure,
    pub(super) store_closed: BoxFuture<'static, ()>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) random: Arc<dyn Random>,
    pub(super) tls: Option<Tls>,
    pub(super) health: Health,
    pub(super) server: Server,
    /// Usage of limited resources, by owner.
    pub(super) ledger: Ledger,
    /// Owners of applications.
    pub(super) owners: Arc<Owners>,
    pub(super) audit: AuditLog,
    pub(super) mark: Arc<StoreMark>,
    data_dir: DataDir,
}

impl Context {
    /// Opens the data directory and the store, and loads or generates the certificate.
    pub(super) async fn open(settings: Settings, audit: AuditLog, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let random = Arc::new(OsRandom);
        let data_dir = DataDir::open(&settings.data_dir)?;
        let OpenStore { store: operators_store, failure: store_failure, closed: store_closed, disk } =
            open_store(&settings, &data_dir, clock.clone()).await?;
        let marked = (operators_store.clone(), durability(&settings));
        let mark = StoreMark::open(&mark_file(&settings, &data_dir), marked, &*random, OlderStore::Refuse).await?;
        mark.start().await?;
        let tls = certificate(&settings, &data_dir, clock.as_ref())?;
        let health = Health::default();
        let checked = operators_store.clone();
        health.add("store", move || {
            let store = checked.clone();
            async move { store.check().await.map_err(|error| ErrorChain(&error).to_string()) }
        });
        let mark = Arc::new(mark);
        let ledger = Ledger::new(&settings.budgets);
        let owners = Arc::new(Owners::unknown(clock.clone()));
        let reserve_bytes = settings.budgets.disk_reserve_bytes;
        let disk = disk.map(|disk| ReservedDisk { disk, reserve_bytes });
        let store = BudgetedStore::open(operators_store.clone(), disk, (ledger.stored.clone(), &owners)).await;
        let server = Server {
            settings: settings.serve.clone(),
            random: random.clone(),
            stop: CancellationToken::new(),
            ledger: ledger.clone(),
            owners: Some(owners.clone()),
        };
        Ok(Self {
            settings,
            store,
            operators_store,
            store_failure,
            store_closed,
            clock,
            random,
            tls,
            health,
            server,
            ledger,
            owners,
            audit,
            mark,
            data_dir,
        })
    }

    /// The sockets of the operator's commands: one for what owners use, and one for an embedded store, which they cannot
    /// open themselves.
    pub(super) fn listen_to_operator(&self) -> Vec<OperatorSocket> {
        let usage = OperatorSocket::start(self.data_dir.usage_socket(), |listener, stop| {
            usage_socket::serve(listener, self.ledger.clone(), stop)
        });
        let is_embedded = self.settings.store.redis.is_none();
        let shared = is_embedded.then(|| {
            OperatorSocket::start(self.data_dir.store_socket(), |listener, stop| {
                store::socket::serve(listener, self.operators_store.clone(), stop.cancelled_owned())
            })
        });
        usage.into_iter().chain(shared.flatten()).collect()
    }

    /// Starts the account service, and if wanted the console at the same address.
    pub(super) async fn start_account(
        &self,
        has_console: bool,
    ) -> anyhow::Result<(ServerHandle, Account, Option<Console>)> {
        let keys = SealingKeys::load_or_create(KeyOwner::Account, &self.data_dir.account_key(), self.random.as_ref())?;
        let listeners = Listeners::new().plain(&self.settings.listen.account).await?;
        let settings = self.settings.account.clone();
        let environment = Environment {
            store: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            audit: self.audit.clone(),
        };
        let account = Account::open(settings, keys, environment).await?;
        let url = local_url(&listeners)?;
        let account = account.listening_at(url.parse()?);
        let (account, console) = match has_console {
            true => self.add_console(account, &url).await?,
            false => (account, None),
        };
        let pages = console.as_ref().map(|console| console_service::pages(console, &self.settings)).transpose()?;
        let verifying = account.clone();
        let service =
            HttpService::new("account", account.router().merge(pages.unwrap_or_default()), ErrorFormat::Account)
                .verifying_components(Arc::new(move |token| verifying.component_of(token)));
        Ok((self.server.start(service, listeners), account, console))
    }

    async fn add_console(&self, account: Account, url: &str) -> anyhow::Result<(Account, Option<Console>)> {
        let given = (self.clock.clone(), self.server.stop.clone());
        let (account, console) = console_service::with_account(&self.settings, (account, url), given).await?;
        Ok((account, Some(console)))
    }

    /// The discovery service of this process, with its own certificate.
    pub(super) fn own_discovery(&self) -> anyhow::Result<DiscoveryClient> {
        let trust = Trust::announced(self.tls.as_ref().map(Tls::certificate_pem).unwrap_or_default());
        Ok(DiscoveryClient::connect(&self.settings.client.discovery_address, &trust)?)
    }

    pub(super) async fn start_discovery(&self, authenticator: Arc<Authenticator>) -> anyhow::Result<ServerHandle> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        let discovery = Discovery::open(&self.settings.discovery, store, authenticator, clock, self.audit.clone());
        let listen = &self.settings.listen;
        let listeners = self.listeners(&listen.discovery, &listen.discovery_http).await?;
        let service = HttpService::new("discovery", discovery.router(&self.health)?, ErrorFormat::GrpcGateway)
            .needing_credentials(discovery::needs_credential);
        Ok(self.server.start(service, listeners))
    }

    /// Starts the codec service.
    pub(super) async fn start_codecs(&self) -> anyhow::Result<ServerHandle> {
        let (clock, random) = (self.clock.clone(), self.random.clone());
        let environment = codec_service::Environment { server: &self.server, clock, random };
        let (serving, codecs) = codec_service::start(&self.settings, environment).await?;
        codecs.report_to(&self.health);
        Ok(serving)
    }

    /// Serves metrics and health checks.
    pub(super) async fn start_telemetry(&self, process: Process, metrics: Metrics) -> anyhow::Result<ServerHandle> {
        let listeners = Listeners::new().plain(&process.listens_on(&self.settings.telemetry)).await?;
        let router = telemetry::router(metrics, self.health.clone());
        Ok(self.server.start(HttpService::new("telemetry", router, ErrorFormat::GrpcGateway), listeners))
    }

    /// The handler's token: from the account service in this process, or else from its file.
    pub(super) async fn component_token(&self, account: Option<Account>) -> anyhow::Result<Arc<ComponentToken>> {
        let id = self.settings.handler.id.clone();
        let clock = self.clock.clone();
        let token = match account {
            Some(account) => {
                let source = OwnAccount { account, id, data_dir: self.data_dir.clone() };
                let token = source.renew(None).await?;
                ComponentToken::new(Some(token), source, clock)
            }
            None => {
                let client = AccountClient::new(&self.settings.client.auth_server)?;
                let token_file = self.settings.handler.token_file.clone();
                let source = OtherAccount { client, id, token_file, data_dir: self.data_dir.clone() };
                ComponentToken::new(source.first()?, source, clock)
            }
        };
        let token = Arc::new(token);
        let checked = token.clone();
        self.health.add("component_token", move || ready(checked.check()));
        Ok(token)
    }

    /// Asks the account service to whom applications belong.
    pub(super) fn ask_owners(&self, token: &Arc<ComponentToken>) -> anyhow::Result<()> {
        let source = AccountOwners::new(AccountClient::new(&self.settings.client.auth_server)?, token.clone());
        self.owners.ask(Arc::new(source));
        Ok(())
    }

    /// Asks the account service whether those who set webhooks may still read messages.
    pub(super) fn grants(&self, token: &Arc<ComponentToken>) -> anyhow::Result<AccountGrants> {
        let client = AccountClient::new(&self.settings.client.auth_server)?;
        let grace_time = Duration::from_secs(self.settings.auth.grace_time_s);
        Ok(AccountGrants::new(client, token.clone(), grace_time, self.audit.clone(), self.clock.clone()))
    }

    /// Checks credentials with the account service; without HTTP if it is one in this process.
    pub(super) fn authenticator(
        &self,
        token: &Arc<ComponentToken>,
        own_account: Option<Account>,
    ) -> anyhow::Result<Authenticator> {
        let client = AccountClient::new(&self.settings.client.auth_server)?;
        let local = own_account.map(|account| Arc::new(InProcessAccount(account)) as Arc<dyn LocalAccount>);
        let issuers = BTreeMap::from([(self.settings.account.issuer.clone(), TrustedAccount { client, local })]);
        Ok(Authenticator::new(issuers, Some(token), self.settings.auth.clone(), self.clock.clone()))
    }

    /// Seals the keys of devices; an error when the store was written with another key file.
    pub(super) async fn sealer(&self) -> anyhow::Result<Sealer> {
        let keys = self.sealing_keys()?;
        Ok(Sealer::for_store(keys, self.store.as_ref(), self.random.clone()).await?)
    }

    /// The keys that protect the handler's secrets in the store, generated on its first start.
    pub(super) fn sealing_keys(&self) -> anyhow::Result<SealingKeys> {
        let path = self.data_dir.handler_key();
        Ok(SealingKeys::load_or_create(KeyOwner::Handler, &path, self.random.as_ref())?)
    }

    /// The handler's own key pair, generated on its first start.
    pub(super) fn handler_identity(&self) -> anyhow::Result<Identity> {
        Ok(Identity::load_or_create(&self.data_dir.handler_identity())?)
    }

    /// Binds two listeners: one for gRPC, with TLS unless it is off, and one for plain HTTP.
    pub(super) async fn listeners(&self, grpc: &str, http: &str) -> anyhow::Result<Listeners> {
        let listeners = match &self.tls {
            Some(tls) => Listeners::new().tls(grpc, tls.server_config(&HTTP_PROTOCOLS)).await?,
            None => Listeners::new().plain(grpc).await?,
        };
        Ok(listeners.plain(http).await?)
    }

    /// Describes both addresses of a service with two listeners.
    pub(super) fn describe(&self, serving: &ServerHandle) -> anyhow::Result<String> {
        let kind = if self.tls.is_some() { "gRPC and HTTP with TLS" } else { "gRPC and HTTP" };
        Ok(format!("{} ({kind}), http://{}", address(serving, 0)?, address(serving, 1)?))
    }
}

/// The URL of the first listener, as this machine reaches it.
fn local_url(listeners: &Listeners) -> anyhow::Result<String> {
    let address = *listeners.addresses().first().context("the account service has no listener")?;
    Ok(format!("http://{}", from_here(address)))
}

/// Opens the Redis that the settings name, or else the embedded store in the data directory.
pub(super) async fn open_store(
    settings: &Settings,
    data_dir: &DataDir,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<OpenStore> {
    let clock = store::StoreClock::new(move || clock.now().as_unix_ms());
    Ok(match &settings.store.redis {
        // It reconnects as often as necessary.
        Some(redis) => OpenStore {
            store: Arc::new(Redis::connect(redis, clock).await?),
            failure: pending().boxed().shared(),
            closed: ready(()).boxed(),
            disk: None,
        },
        None => {
            let store = Embedded::open(&data_dir.store(), clock)?;
            let disk = Some(Embedded::disk(&data_dir.store()));
            let failure = store.failure().map(Arc::new).boxed().shared();
            let closed = store.closed().boxed();
            OpenStore { store: Arc::new(store), failure, closed, disk }
        }
    })
}

pub(super) fn durability(settings: &Settings) -> Durability {
    if settings.store.redis.is_some() { Durability::LosesLastSecond } else { Durability::Full }
}

/// Returns the path of the store's mark.
pub(super) fn mark_file(settings: &Settings, data_dir: &DataDir) -> PathBuf {
    settings.store.mark_file.clone().unwrap_or_else(|| data_dir.store_mark())
}

/// The address of a service's listener, counted from 0.
pub(super) fn address(serving: &ServerHandle, number: usize) -> anyhow::Result<SocketAddr> {
    serving.addresses().get(number).copied().context("a service has no such listener")
}
