//! The handler service with its MQTT broker, output, sandboxes and announcement.

mod announcement;
mod broker_access;
mod delivery_threads;
mod downlink_turns;
mod external_broker;
mod operations;

use std::{fmt::Display, net::SocketAddr, sync::Arc};

use anyhow::{Context as _, ensure};
use client::{Trust, account::AccountClient, discovery::DiscoveryClient, network_broker::CallingComponent};
use handler::{
    downlink::{DownlinkReceiver, Outgoing},
    network::network_broker::{CallTurns, NetworkBrokers, Reconciliation, Subscriptions, UplinkReceiver},
    output::{AllOutputs, Output, OutputSettings, RecordedOutput, mqtt::MqttOutput, queued::QueuedOutput},
    uplink::Runs,
};
use history::History;
use mqtt::{Broker, BrokerServices, Durable, Router, SessionMemory, Sharing};
use outputs::{OperatorOutputs, OperatorSettings, Outputs};
use server::status::ErrorChain;
use server::{
    auth::{Authenticator, ComponentToken},
    error_response::ErrorFormat,
    serve::{HttpService, Listeners, Server, ServerHandle},
    telemetry::MetricsSource,
    tls::Tls,
};
use tokio::{runtime::Handle, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use types::ServiceName;

use self::{
    announcement::{announcement, announcer, public_address, report_announcement},
    broker_access::{access_requests, serve_access},
    delivery_threads::DeliveryThreads,
    external_broker::{ExternalBroker, SubscribedBroker},
    operations::{complete_deletions, judge_candidates, network_events, operations, silence_watch},
};
use super::{
    context::Context,
    networks::{Networks, Shadow, Trials, WatchedNetwork},
};
use crate::{pool, version};

pub(super) struct HandlerService {
    serving: ServerHandle,
    broker: Broker,
    external_broker: Option<SubscribedBroker>,
    /// Answers that broker.
    answering: Option<ServerHandle>,
    networks: Networks,
    network_brokers: Subscriptions,
    runs: Arc<Runs>,
    outgoing: Arc<Outgoing>,
    outputs: Arc<Outputs>,
    history: Arc<History>,
    delivery_threads: DeliveryThreads,
    announcing: Option<JoinHandle<()>>,
    deletions: JoinHandle<()>,
    candidates: JoinHandle<()>,
    silence: JoinHandle<()>,
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
        ensure!(tls.is_some() || settings.broker.tls_listen.is_empty(), "broker.tls_listen needs TLS: set tls.mode");
        let has_secure_websocket = !settings.broker.websocket_tls_listen.is_empty();
        ensure!(tls.is_some() || !has_secure_websocket, "broker.websocket_tls_listen needs TLS: set tls.mode");
        let (random, clock) = (context.random.as_ref(), &context.clock);
        let router = Arc::new(router(context).await?);
        let delivery_threads = DeliveryThreads::start().context("cannot start the threads of deliveries")?;
        let outputs = Arc::new(outputs(context, &token, delivery_threads.handle())?);
        let external_broker = ExternalBroker::connect(context)?;
        let mut all: Vec<Arc<dyn Output>> = vec![
            Arc::new(MqttOutput::new(Arc::clone(&router), &settings.output)),
            Arc::new(QueuedOutput::new(outputs.clone(), clock.clone())),
        ];
        all.extend(external_broker.as_ref().map(ExternalBroker::output));
        let plain: Arc<dyn Output> = Arc::new(AllOutputs(all));
        let history = super::history::open(context)?;
        let output: Arc<dyn Output> =
            Arc::new(RecordedOutput { output: plain.clone(), history: history.clone(), clock: context.clock.clone() });
        let pool = Arc::new(pool::start("handler", &context.settings.sandbox).await?);
        let outgoing = Arc::new(Outgoing::new(context.store.clone(), output.clone(), context.clock.clone()));
        let leaving = (output.clone(), outgoing.clone(), outputs.clone());
        let recorded = (plain, history.clone());
        let discovery = discovery_client(context)?;
        let network_brokers = Arc::new(network_brokers(context, discovery.clone(), &listeners)?);
        let callers = (authenticator.clone(), network_brokers.clone());
        let mut operations = operations(context, &pool, callers, leaving, recorded).await?;
        let reconciliation = Arc::new(Reconciliation {
            devices: operations.devices.clone(),
            account: AccountClient::new(&settings.client.auth_server)?,
            token: token.clone(),
        });
        let downlinks = Arc::new(DownlinkReceiver::new(operations.downlinks.clone(), &context.ledger));
        let access_requests = access_requests(context, &authenticator)?;
        let services =
            BrokerServices { authenticator, downlinks: downlinks.clone(), router, ledger: context.ledger.clone() };
        let broker = Broker::start(&settings.broker, tls, services, random, clock).await?;
        let mqtt_address = match &external_broker {
            Some(external_broker) => external_broker.address().to_owned(),
            None => format!("{}:{}", settings.announce_host, broker.address().port()),
        };
        let announcement = announcement(context, &listeners, mqtt_address)?;
        let announcer = announcer(context, token, discovery, announcement).map(Arc::new);
        report_announcement(context, announcer.clone());
        operations.announcer.clone_from(&announcer);
        let stop = CancellationToken::new();
        let network_events = network_events(&operations, output, outgoing.clone());
        let receiver = Arc::new(UplinkReceiver::new(network_events.clone()));
        let runs = operations.uplinks.runs.clone();
        let operations = Arc::new(operations);
        let deletions = tokio::spawn(complete_deletions(operations.clone(), stop.clone()));
        let candidates = tokio::spawn(judge_candidates(operations.clone(), stop.clone()));
        let silence = tokio::spawn(silence_watch(context, &operations).run(stop.clone()));
        let server = Server { stop: stop.clone(), ..context.server.clone() };
        let router = handler::router(operations, &context.health)?;
        let service = HttpService::new("handler", router, ErrorFormat::GrpcGateway)
            .needing_credentials(handler::needs_credential)
            .with_streams(handler::is_stream);
        let serving = server.start(service, listeners);
        let networks = Networks::start(context, &server, &pool, &network_events).await?;
        outgoing.start(networks.of_applications()?);
        note_receivers(context, external_broker.as_ref());
        let external_broker = external_broker.map(|broker| broker.subscribe(downlinks));
        let answering = serve_access(context, &server, access_requests).await?;
        let announcing = match announcer {
            Some(announcer) => {
                // The handler works without the discovery service, and keeps trying to announce itself.
                if let Err(error) = announcer.announce().await {
                    tracing::warn!(error = %ErrorChain(&error), "cannot announce this handler: trying again");
                }
                Some(tokio::spawn({
                    let stop = stop.clone();
                    async move { announcer.run(stop).await }
                }))
            }
            None => None,
        };
        let network_brokers = network_brokers.subscribe(receiver, &reconciliation);
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
            history,
            delivery_threads,
            announcing,
            deletions,
            candidates,
            silence,
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
    pub(super) fn runs(&self) -> Arc<Runs> {
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
        for task in self.announcing.into_iter().chain([self.deletions, self.candidates, self.silence]) {
            // It fails only by a panic, which has been logged.
            _ = task.await;
        }
        if let Some(publishing) = publishing {
            publishing.finished().await;
        }
        tokio::join!(self.broker.shutdown(), self.outputs.stop());
        if let Err(error) = self.history.close().await {
            tracing::warn!(error = %ErrorChain(&error), "cannot close the history: the next start reads more");
        }
        self.delivery_threads
    }
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

/// The outputs with queues, which deliver what earlier processes left.
fn outputs(context: &Context, token: &Arc<ComponentToken>, threads: Handle) -> anyhow::Result<Outputs> {
    let OutputSettings { delivery, amqp, redis, kafka, .. } = &context.settings.output;
    let environment = outputs::Environment {
        store: context.store.clone(),
        is_shared: context.settings.store.redis.is_some(),
        clock: context.clock.clone(),
        random: context.random.clone(),
        keys: context.sealing_keys()?,
        operator: OperatorOutputs::start(OperatorSettings { amqp, redis, kafka }, delivery, &context.random)?,
        look_up: outputs::system_look_up(),
        ledger: context.ledger.clone(),
        owners: context.owners.clone(),
        grants: Arc::new(context.grants(token)?),
        threads,
    };
    Outputs::start(delivery, environment).context("cannot start the outputs")
}

/// Records who gets messages, or brings them, by the settings of the operator. No right of a user stands behind them.
fn note_receivers(context: &Context, external_broker: Option<&ExternalBroker>) {
    let OutputSettings { amqp, redis, kafka, .. } = &context.settings.output;
    let note = |event, what: &dyn Display, name: &dyn Display| {
        context.audit.note(event, &"settings", &format_args!("{what} {name}"));
    };
    amqp.iter().for_each(|output| note("output started", &"amqp", &output.name));
    redis.iter().for_each(|output| note("output started", &"redis", &output.name));
    kafka.iter().for_each(|output| note("output started", &"kafka", &output.name));
    if let Some(broker) = external_broker {
        note("output started", &"external broker", &broker.address());
    }
    for network in &context.settings.bridge.into {
        // One without a name has been refused.
        let name = network.name().unwrap_or_default();
        network.applications.iter().for_each(|settings| note("bridge started", &name, &settings.app_id));
    }
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
    Ok(NetworkBrokers { ids, discovery, caller, clock, turns: CallTurns::default() })
}
