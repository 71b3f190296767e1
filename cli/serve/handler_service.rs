//! The handler with what belongs to it: its broker, its output, its sandboxes, its announcement.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use client::{Trust, discovery::DiscoveryClient};
use handler::{
    access::{Access, RateLimiter},
    announcement::Announcer,
    api::operations::Operations,
    application::Applications,
    device::{Addresses, Devices},
    downlink::Downlinks,
    join::Joins,
    output::mqtt::{DownlinkSubscriber, MqttOutput},
    payload::Payloads,
    status::Component,
    uplink::Uplinks,
};
use mqtt::Broker;
use runtime::{Engine, Pool};
use server::{
    auth::Authenticator,
    reply::Shape,
    serve::{Listeners, Server, Serving, Site},
    tls::Tls,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use types::{Secret, ServiceName};

use super::context::Ground;

/// How long the first connection to the broker, and the last messages to it, may take.
const BROKER_WAIT: Duration = Duration::from_secs(5);

/// A running handler.
pub(super) struct Handling {
    serving: Serving,
    broker: Broker,
    output: Arc<MqttOutput>,
    subscriber: DownlinkSubscriber,
    downlinks: JoinHandle<()>,
    announcing: Option<JoinHandle<()>>,
    stop: CancellationToken,
}

impl Handling {
    /// Starts the handler and what belongs to it; returns when it can take an uplink.
    pub(super) async fn start(
        ground: &Ground,
        authenticator: Arc<Authenticator>,
        token: Option<Secret>,
    ) -> anyhow::Result<Self> {
        let settings = &ground.settings;
        let listeners = ground.listeners(&settings.listen.handler, &settings.listen.handler_http).await?;
        let tls = ground.tls.as_ref().map(|tls| tls.server_config(&[]));
        ensure!(tls.is_some() || settings.broker.tls_listen.is_empty(), "broker.tls_listen needs TLS: set tls.mode");
        let broker = Broker::start(&settings.broker, tls, authenticator.clone(), ground.random.as_ref()).await?;
        let output = Arc::new(MqttOutput::connect(&broker.internal(), &settings.output, ground.random.as_ref()));
        let announcer = announcer(ground, token, &listeners, broker.address())?.map(Arc::new);
        let operations = operations(ground, authenticator, output.clone(), announcer.clone()).await?;
        let (subscriber, published) = DownlinkSubscriber::connect(&broker.internal(), ground.random.as_ref());
        let downlinks = tokio::spawn(downlinks(ground, &operations, output.clone()).serve(published));
        let (mut connected, mut subscribed) = (output.connected(), subscriber.subscribed());
        let ready = async { tokio::try_join!(connected.wait_for(|it| *it), subscribed.wait_for(|it| *it)).map(drop) };
        tokio::time::timeout(BROKER_WAIT, ready).await.context("the MQTT broker does not answer")??;
        let stop = CancellationToken::new();
        let server = Server { stop: stop.clone(), ..ground.server.clone() };
        let router = handler::router(Arc::new(operations), &ground.health)?;
        let serving = server.start(Site { name: "handler", router, shape: Shape::Gateway }, listeners);
        let announcing = match announcer {
            Some(announcer) => {
                // Without the discovery service the handler works all the same; it will be told later.
                if let Err(error) = announcer.announce().await {
                    tracing::warn!(%error, "cannot announce this handler yet");
                }
                Some(tokio::spawn({
                    let stop = stop.clone();
                    async move { announcer.run(stop).await }
                }))
            }
            None => None,
        };
        Ok(Self { serving, broker, output, subscriber, downlinks, announcing, stop })
    }

    /// The listeners: for gRPC clients, and plain.
    pub(super) fn serving(&self) -> &Serving {
        &self.serving
    }

    /// Where MQTT clients connect.
    pub(super) fn mqtt_address(&self) -> SocketAddr {
        self.broker.address()
    }

    /// Where MQTT clients connect with TLS.
    pub(super) fn mqtt_tls_address(&self) -> Option<SocketAddr> {
        self.broker.tls_address()
    }

    /// Finishes what was accepted, publishes what waits, and ends.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.serving.finished().await;
        if let Some(announcing) = self.announcing {
            // It was told to stop; that it ended otherwise was logged where it happened.
            _ = announcing.await;
        }
        drop(self.subscriber);
        // Each of them is bounded; that one panicked was logged where it happened.
        _ = self.downlinks.await;
        self.output.close(BROKER_WAIT).await;
        self.broker.shutdown().await;
    }
}

async fn operations(
    ground: &Ground,
    authenticator: Arc<Authenticator>,
    output: Arc<MqttOutput>,
    announcer: Option<Arc<Announcer>>,
) -> anyhow::Result<Operations> {
    let sandbox = ground.settings.sandbox.clone();
    // Compiling the guest takes seconds on the first start.
    let engine = tokio::task::spawn_blocking(move || Engine::new(&sandbox)).await??;
    let payloads = Arc::new(Payloads::new(Pool::start(Arc::new(engine))?, &ground.settings.handler)?);
    let sealer = ground.sealer().await?;
    let applications = Applications::new(ground.store.clone(), sealer.clone());
    let devices = Devices::new(ground.store.clone(), sealer);
    let access = Access::new(authenticator, RateLimiter::new(ground.store.clone(), ground.settings.handler.calls));
    let joins = Joins {
        access: access.clone(),
        applications: applications.clone(),
        devices: devices.clone(),
        output: output.clone(),
        random: ground.random.clone(),
        clock: ground.clock.clone(),
    };
    Ok(Operations {
        access,
        applications: applications.clone(),
        devices: devices.clone(),
        payloads: payloads.clone(),
        uplinks: Uplinks { applications, devices, payloads, output },
        joins,
        network_brokers: ground.settings.handler.brokers.clone(),
        announcer,
        addresses: Addresses::new(ground.settings.handler.prefixes.clone(), ground.random.clone()),
        component: Component {
            id: ground.settings.handler.id.clone(),
            started: ground.clock.now(),
            traffic: Arc::default(),
        },
        clock: ground.clock.clone(),
    })
}

/// The way of downlinks, to the same devices as the operations.
fn downlinks(ground: &Ground, operations: &Operations, output: Arc<MqttOutput>) -> Arc<Downlinks> {
    Arc::new(Downlinks {
        applications: operations.applications.clone(),
        devices: operations.devices.clone(),
        payloads: operations.payloads.clone(),
        output,
        store: ground.store.clone(),
        traffic: operations.component.traffic.clone(),
        clock: ground.clock.clone(),
    })
}

/// What tells the network that this handler is here; none without a token to say it with.
fn announcer(
    ground: &Ground,
    token: Option<Secret>,
    listeners: &Listeners,
    mqtt: SocketAddr,
) -> anyhow::Result<Option<Announcer>> {
    let Some(token) = token else {
        tracing::warn!(
            "this handler announces nothing: set handler.token_file to handler.token of the account service's folder"
        );
        return Ok(None);
    };
    let settings = &ground.settings;
    let certificate = ground.tls.as_ref().map(Tls::certificate_pem).unwrap_or_default();
    let discovery = DiscoveryClient::connect(&settings.client.discovery_address, &Trust::announced(certificate))?;
    let listening = listeners.addresses();
    let port = |number: usize| listening.get(number).map(SocketAddr::port).context("the handler does not listen");
    let (host, id) = (&settings.announce_host, &settings.handler.id);
    let announcement = api::discovery::Announcement {
        id: id.to_string(),
        service_name: ServiceName::Handler.to_string(),
        service_version: service_version(),
        description: settings.handler.description.clone(),
        net_address: format!("{host}:{}", port(0)?),
        api_address: format!("http://{host}:{}", port(1)?),
        mqtt_address: format!("{host}:{}", mqtt.port()),
        certificate: certificate.to_owned(),
        public_key: ground.identity()?.public_key_pem().to_owned(),
        ..Default::default()
    };
    Ok(Some(Announcer::new(discovery, id.clone(), token, announcement)))
}

/// What discovery shows, in the form of v2: version, commit and date, as far as whoever built this said them.
fn service_version() -> String {
    let commit = option_env!("AIRLOCK_COMMIT").unwrap_or("unknown");
    let built = option_env!("AIRLOCK_BUILD_DATE").unwrap_or("unknown");
    format!("{}-{commit} ({built})", env!("CARGO_PKG_VERSION"))
}
