//! The handler service with its MQTT broker, output, sandboxes and announcement.

mod announcement;
mod broker_access;
mod delivery_threads;
mod downlink_leases;
mod external_broker;
mod message_outputs;
mod operations;

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context as _, ensure};
use client::{Trust, account::AccountClient, discovery::DiscoveryClient, network_broker::CallingComponent};
use handler::{
    api::operations::Operations,
    downlink::{DownlinkReceiver, Outgoing},
    network::network_broker::{ApplicationLocks, NetworkBrokers, Reconciliation, Subscriptions, UplinkReceiver},
    uplink::RunCounters,
};
use mqtt::{Broker, BrokerServices, BrokerSettings, Durable, Router, SessionMemory, Sharing};
use server::{
    auth::{Authenticator, ComponentToken},
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server, ServerHandle},
    status::ErrorChain,
    telemetry::MetricsSource,
    tls::Tls,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use types::ServiceName;

use self::{
    announcement::{announcement, announcer, keep_announced, public_address},
    broker_access::{access_requests, serve_access},
    delivery_threads::DeliveryThreads,
    external_broker::{ExternalBroker, SubscribedBroker},
    message_outputs::{MessageOutputs, note_receivers},
    operations::{background, network_events, operations},
};
use super::{
    context::Context,
    networks::{Networks, Shadow, Trials, WatchedNetwork},
};
use crate::{services::pool, version};

pub(super) struct HandlerService {
    serving: ServerHandle,
    broker: Broker,
    external_broker: Option<SubscribedBroker>,
    /// Answers that broker.
    answering: Option<ServerHandle>,
    networks: Networks,
    network_brokers: Subscriptions,
    runs: Arc<RunCounters>,
    outgoing: Arc<Outgoing>,
    outputs: MessageOutputs,
    background: Vec<JoinHandle<()>>,
    stop: CancellationToken,
}

impl HandlerService {
    /// Starts the handler; returns when it can take an uplink.
    pub(super) async fn start(
        context: &Context,
        authenticator: Arc<Authenticator>,
        token: Arc<ComponentToken>,
    ) -> anyhow::Result<Self> {
        let settings = &context.settings;
        let listeners = context.listeners(&settings.listen.handler, &settings.listen.handler_http).await?;
        let tls = context.tls.as_ref().map(|tls| tls.server_config(&[]));
        check_broker_tls(&settings.broker, tls.is_some())?;
        let router = Arc::new(router(context).await?);
        let external_broker = ExternalBroker::connect(context)?;
        let outputs = MessageOutputs::start(context, &router, external_broker.as_ref(), &token)?;
        let pool = Arc::new(pool::start("handler", &settings.sandbox).await?);
        let discovery = discovery_client(context)?;
        let network_brokers = Arc::new(network_brokers(context, discovery.clone(), &listeners)?);
        let callers = (authenticator.clone(), network_brokers.clone());
        let mut operations = operations(context, &pool, callers, &outputs).await?;
        let reconciliation = Arc::new(reconciliation(context, &operations, &token)?);
        let downlinks = Arc::new(DownlinkReceiver::new(operations.downlinks.clone(), &context.ledger));
        let access_requests = access_requests(context, &authenticator)?;
        let services =
            BrokerServices { authenticator, downlinks: downlinks.clone(), router, ledger: context.ledger.clone() };
        let broker = Broker::start(&settings.broker, tls, services, context.random.as_ref(), &context.clock).await?;
        let mqtt_address = mqtt_address(context, external_broker.as_ref(), &broker);
        let announcement = announcement(context, &listeners, mqtt_address)?;
        operations.announcer = announcer(context, token, discovery, announcement);
        let operations = Arc::new(operations);
        let stop = CancellationToken::new();
        let mut background = background(context, &operations, &stop);
        let server = Server { stop: stop.clone(), ..context.server.clone() };
        let serving = serve(context, &server, operations.clone(), listeners)?;
        let network_events = network_events(&operations);
        let networks = Networks::start(context, &server, &pool, &network_events).await?;
        let outgoing = operations.downlinks.outgoing.clone();
        outgoing.start(networks.of_applications()?);
        note_receivers(context, external_broker.as_ref());
        let external_broker = external_broker.map(|broker| broker.subscribe(downlinks));
        let answering = serve_access(context, &server, access_requests).await?;
        background.extend(keep_announced(operations.announcer.clone(), stop.clone()).await);
        let receiver = Arc::new(UplinkReceiver::new(network_events));
        let network_brokers = network_brokers.subscribe(receiver, &reconciliation);
        let runs = operations.uplinks.runs.clone();
        Ok(Self {
            serving,
            broker,
            external_broker,
            answering,
            networks,
            network_brokers,
            runs,
            outgoing,
            outputs,
            background,
            stop,
        })
    }

    /// The two listeners: gRPC, then plain HTTP.
    pub(super) fn serving(&self) -> &ServerHandle {
        &self.serving
    }

    pub(super) fn mqtt_address(&self) -> SocketAddr {
        self.broker.address()
    }

    /// Metrics that only this service can write.
    pub(super) fn metrics(&self) -> [MetricsSource; 2] {
        [self.broker.application_metrics(), self.networks.metrics()]
    }

    pub(super) fn webhook_addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.networks.webhook_addresses()
    }

    /// The uplinks of applications, as they are counted.
    pub(super) fn runs(&self) -> Arc<RunCounters> {
        self.runs.clone()
    }

    pub(super) fn watched_networks(&self) -> Arc<[WatchedNetwork]> {
        self.networks.watched()
    }

    pub(super) fn trials(&self) -> Arc<Trials> {
        self.networks.trials()
    }

    pub(super) fn shadows(&self) -> Arc<[Shadow]> {
        self.networks.shadows()
    }

    /// Returns the address at which a broker of others asks what clients may do.
    pub(super) fn access_address(&self) -> Option<SocketAddr> {
        self.answering.as_ref().and_then(|answering| answering.addresses().first().copied())
    }

    pub(super) fn mqtt_tls_address(&self) -> Option<SocketAddr> {
        self.broker.tls_address()
    }

    pub(super) fn mqtt_websocket_address(&self) -> Option<SocketAddr> {
        self.broker.websocket_address()
    }

    /// Finishes accepted calls, publishes queued messages, and stops. Returns the threads of deliveries: connections to
    /// the store that were opened there need them until it closes.
    pub(super) async fn stop(self) -> DeliveryThreads {
        self.stop.cancel();
        let (publishing, receiving) = self.external_broker.map(SubscribedBroker::split).unzip();
        let answering = async {
            if let Some(answering) = self.answering {
                answering.finished().await;
            }
        };
        let receiving = async {
            if let Some(receiving) = receiving {
                receiving.stop().await;
            }
        };
        tokio::join!(
            self.serving.finished(),
            self.networks.stop(),
            self.network_brokers.stop(),
            receiving,
            answering,
            self.outgoing.stop()
        );
        for task in self.background {
            // It fails only by a panic, which has been logged.
            _ = task.await;
        }
        if let Some(publishing) = publishing {
            publishing.finished().await;
        }
        tokio::join!(self.broker.shutdown(), self.outputs.queued.stop());
        if let Err(error) = self.outputs.history.close().await {
            tracing::warn!(error = %ErrorChain(&error), "cannot close the history: the next start reads more");
        }
        self.outputs.delivery_threads
    }
}

/// Refuses listeners that need TLS if there is none.
fn check_broker_tls(settings: &BrokerSettings, has_tls: bool) -> anyhow::Result<()> {
    ensure!(has_tls || settings.tls_listen.is_empty(), "broker.tls_listen needs TLS: set tls.mode");
    let has_secure_websocket = !settings.websocket_tls_listen.is_empty();
    ensure!(has_tls || !has_secure_websocket, "broker.websocket_tls_listen needs TLS: set tls.mode");
    Ok(())
}

/// The sessions of MQTT clients, with those that were stored before.
async fn router(context: &Context) -> anyhow::Result<Router> {
    let (store, clock) = (context.store.clone(), context.clock.clone());
    let process = u64::from_be_bytes(context.random.array());
    let sharing = if context.settings.store.redis.is_some() { Sharing::Shared } else { Sharing::Alone };
    let durable = Durable::new(store, sharing, context.settings.handler.id.to_string(), process, clock.clone());
    let durable = durable.with_sealing(context.sealing_keys()?, context.random.clone());
    let memory = SessionMemory::new(context.ledger.queued.clone(), context.owners.clone());
    Router::load(durable, memory, clock).await.context("cannot load the sessions of MQTT clients")
}

/// The address at which applications connect: that of the external broker if messages go there.
fn mqtt_address(context: &Context, external_broker: Option<&ExternalBroker>, broker: &Broker) -> String {
    match external_broker {
        Some(external_broker) => external_broker.address().to_owned(),
        None => format!("{}:{}", context.settings.announce_host, broker.address().port()),
    }
}

/// Serves the handler's APIs.
fn serve(
    context: &Context,
    server: &Server,
    operations: Arc<Operations>,
    listeners: Listeners,
) -> anyhow::Result<ServerHandle> {
    let router = handler::router(operations, &context.health)?;
    let service = HttpService::new("handler", router, ErrorFormat::GrpcGateway)
        .needing_credentials(handler::needs_credential)
        .with_streams(handler::is_stream);
    Ok(server.start(service, listeners))
}

fn discovery_client(context: &Context) -> anyhow::Result<DiscoveryClient> {
    let own = || context.tls.as_ref().map(Tls::certificate_pem).unwrap_or_default().to_owned();
    let trust = match &context.settings.handler.discovery_certificate_file {
        Some(path) => {
            let pem = std::fs::read_to_string(path);
            let pem =
                pem.with_context(|| format!("cannot read handler.discovery_certificate_file {}", path.display()))?;
            // An empty file must not turn encryption off.
            Trust::Certificate(pem)
        }
        None => Trust::announced(&own()),
    };
    Ok(DiscoveryClient::connect(&context.settings.client.discovery_address, &trust)?)
}

/// The network brokers that this handler trusts, and how it calls them.
fn network_brokers(
    context: &Context,
    discovery: DiscoveryClient,
    listeners: &Listeners,
) -> anyhow::Result<NetworkBrokers> {
    let (identity, clock) = (context.handler_identity()?, context.clock.clone());
    let id = context.settings.handler.id.clone();
    let caller = CallingComponent {
        id: id.clone(),
        service: ServiceName::Handler,
        version: version::announced(),
        net_address: public_address(context, listeners, 0)?,
        sign: Arc::new(move || identity.token(&id, clock.now())),
    };
    let (ids, clock) = (context.settings.handler.network_brokers.clone(), context.clock.clone());
    Ok(NetworkBrokers { ids, discovery, caller, clock, locks: ApplicationLocks::default() })
}

/// Brings devices to the network server that lacks them.
fn reconciliation(
    context: &Context,
    operations: &Operations,
    token: &Arc<ComponentToken>,
) -> anyhow::Result<Reconciliation> {
    Ok(Reconciliation {
        devices: operations.devices.clone(),
        account: AccountClient::new(&context.settings.client.auth_server)?,
        token: token.clone(),
    })
}
