//! ChirpStack as a network whose devices belong to applications of this process.

mod intake;
mod report;
mod routes;

use std::{sync::Arc, time::Duration};

use api::chirpstack::DeviceQueueItem;
use bridge::{
    Environment, Error, Network, NetworkState, StateDir,
    codec::single_flight::Api,
    hand_over::{
        HandOver,
        api_watch::ApiWatch,
        network::{Route, not_sent, refusal},
        traffic::NetworkTraffic,
    },
    metrics,
    publish::prefix::is_same_broker,
    receive::{
        dedup::Dedup,
        lanes::{LaneWork, apart, work_of},
        report_connection,
    },
};
use client::chirpstack::ChirpStackClient;
use futures::future::BoxFuture;
use link::delivery::Delivery;
use parking_lot::Mutex;
use server::{status::ErrorChain, telemetry::Health};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use types::{AppId, DevEui, Kind, Kinded, NetworkDownlink, NetworkRefusal};

use self::{intake::Intake, routes::Routes};
use super::{
    api::{check_api, directory, watch_api},
    codec::directory::{API, Directory},
    event::{incoming::in_json, topic::Topic},
    settings::{ChirpStackSettings, GrpcSettings},
    source::{
        Events,
        brokers::{EventSource, network_source},
        group,
    },
};

/// The processes that share the events of a broker or a stream. Bridges that decode beside ChirpStack share others.
const GROUP: &str = "airlock-serve";

/// ChirpStack: its events, from MQTT or Redis, and its API, to which downlinks go.
pub struct ChirpStackNetwork {
    routes: Arc<Routes>,
    directory: Option<Arc<Directory>>,
    api: Option<ApiWatch>,
    /// None once it is stopped.
    events: Mutex<Option<Events>>,
    subscribed: watch::Receiver<bool>,
    traffic: Arc<NetworkTraffic>,
    stopping: CancellationToken,
    _refresh: Option<AbortOnDropHandle<()>>,
    _state_dir: StateDir,
}

impl ChirpStackNetwork {
    /// Checks the settings, and connects in the background, however long ChirpStack is away.
    pub fn start(settings: &ChirpStackSettings, routes: Vec<Route>, environment: &Environment) -> Result<Self, Error> {
        metrics::describe();
        let routes = Arc::new(Routes::new(routes, !settings.grpc.url.is_empty())?);
        let state_dir = StateDir::open(environment.state_dir.clone())?;
        let client_id = state_dir.client_id(environment.random.as_ref())?;
        let source = network_source(settings, &client_id)?;
        let directory = open_directory(settings, environment, &state_dir)?;
        let refresh = directory.clone().map(|directory| {
            let grpc = settings.grpc.clone();
            AbortOnDropHandle::new(tokio::spawn(async move { follow(directory, &grpc).await }))
        });
        let api = directory.as_ref().map(|directory| watch_api(directory, &settings.grpc));
        let stopping = CancellationToken::new();
        let window = Duration::from_millis(settings.duplicate_window_ms);
        let dedup = Dedup::new(settings.duplicate_messages_max, window, environment.clock.clone());
        let traffic = Arc::new(NetworkTraffic::new(environment.clock.clone()));
        let intake = Intake {
            routes: routes.clone(),
            directory: directory.clone(),
            hand_over: HandOver::new(dedup, traffic.clone(), stopping.clone()),
            stopping: stopping.clone(),
        };
        let mut shared = settings.clone();
        shared.redis.group = format!("{}-serve", settings.redis.group);
        let work = work(intake);
        let events = Events::start(
            source,
            &shared,
            (&client_id, group(GROUP, &shared)),
            in_json(move |delivery| work(delivery)),
        );
        let subscribed = events.connection().connected();
        Ok(Self {
            routes,
            directory,
            api,
            events: Mutex::new(Some(events)),
            subscribed,
            traffic,
            stopping,
            _refresh: refresh,
            _state_dir: state_dir,
        })
    }

    /// Returns true if two entries of the settings lead to the same events, as far as names and addresses tell. The
    /// events of either would be shared with the other.
    pub async fn is_same_source(one: &ChirpStackSettings, other: &ChirpStackSettings) -> bool {
        match (network_source(one, ""), network_source(other, "")) {
            (Ok(EventSource::Mqtt(one)), Ok(EventSource::Mqtt(other))) => is_same_broker(&one, &other).await,
            (Ok(EventSource::Redis(node)), Ok(EventSource::Redis(other_node))) => {
                node.is_same_server(&other_node) && one.redis.key_prefix == other.redis.key_prefix
            }
            _ => false,
        }
    }

    async fn try_send(
        &self,
        app_id: &AppId,
        dev_eui: DevEui,
        downlink: NetworkDownlink,
    ) -> Result<String, NetworkRefusal> {
        // It chooses the id itself.
        let NetworkDownlink { port, confirmed, payload, replaces_others, .. } = downlink;
        let Some(directory) = &self.directory else {
            return Err(NetworkRefusal::new(
                Kind::Unsupported,
                "downlinks need ChirpStack's API: set `chirpstack.grpc`",
            ));
        };
        let dev_eui = dev_eui.to_string().to_lowercase();
        self.check_owner(directory.api(), app_id, &dev_eui).await?;
        let item = DeviceQueueItem { dev_eui, confirmed, f_port: port.into(), data: payload };
        match directory.api().enqueue(item, replaces_others).await {
            Ok(id) => Ok(id),
            Err(error) => Err(refused(directory.api(), refusal, &error).await),
        }
    }

    /// Checks that the device belongs to the application. Users who register devices here choose their EUIs, and the
    /// bridge's key reaches all devices.
    async fn check_owner(&self, api: &ChirpStackClient, app_id: &AppId, dev_eui: &str) -> Result<(), NetworkRefusal> {
        let device = match api.device(dev_eui).await {
            Ok(response) => response.device.unwrap_or_default(),
            Err(error) => return Err(refused(api, not_sent, &error).await),
        };
        let route =
            self.routes.try_find(&device.application_id, Some(api)).await.map_err(|error| not_sent(API, &error))?;
        if route.is_some_and(|route| route.app_id == *app_id) {
            return Ok(());
        }
        Err(NetworkRefusal::new(
            Kind::Denied,
            format_args!("the device with DevEUI {dev_eui} belongs to another application of ChirpStack"),
        ))
    }
}

/// Turns an error of the API into a refusal. A key that is accepted may not see the device, whether or not it exists.
async fn refused(
    api: &ChirpStackClient,
    refusal: fn(Api, &client::Error) -> NetworkRefusal,
    error: &client::Error,
) -> NetworkRefusal {
    let refusal = refusal(API, error);
    match error.kind() {
        Kind::Unauthenticated | Kind::Denied if api.check().await.is_ok() => {
            NetworkRefusal::new(Kind::Denied, refusal.reason())
        }
        _ => refusal,
    }
}

impl Network for ChirpStackNetwork {
    fn send(
        &self,
        app_id: AppId,
        dev_eui: DevEui,
        downlink: NetworkDownlink,
    ) -> BoxFuture<'_, Result<String, NetworkRefusal>> {
        Box::pin(async move {
            let sent = self.try_send(&app_id, dev_eui, downlink).await;
            self.traffic.downlink(sent.is_ok());
            sent
        })
    }

    fn report_to(&self, health: &Health) {
        report_connection(health, "events from ChirpStack", &self.subscribed);
    }

    fn state(&self) -> NetworkState {
        let events = self.events.lock();
        NetworkState {
            connections: events.iter().map(|events| ("events".to_owned(), events.connection().state())).collect(),
            api: self.api.as_ref().map(ApiWatch::state),
            in_progress: events.as_ref().map_or(0, Events::in_progress),
            traffic: self.traffic.state(),
        }
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.stopping.cancel();
            let events = self.events.lock().take();
            if let Some(events) = events {
                events.drain().await;
            }
            if let Some(directory) = &self.directory {
                directory.save().await;
            }
        })
    }
}

/// Returns the handler of events. Reports about downlinks may have to wait, and uplinks do not wait for them.
fn work(intake: Intake) -> LaneWork<Delivery> {
    let work = work_of(intake, |intake, delivery| async move { intake.handle(delivery).await });
    apart(work, |delivery: &Delivery| {
        let topic = Topic::parse(&delivery.topic, "")?;
        let is_report = ["txack", "ack", "log"].contains(&topic.event()?);
        is_report.then(|| topic.dev_eui.to_owned())
    })
}

/// The devices as ChirpStack's API describes them; none if it is not set.
fn open_directory(
    settings: &ChirpStackSettings,
    environment: &Environment,
    state_dir: &StateDir,
) -> Result<Option<Arc<Directory>>, Error> {
    if settings.grpc.url.is_empty() {
        tracing::warn!("without ChirpStack's API, its devices have no variables, and downlinks cannot be sent");
        return Ok(None);
    }
    directory(settings, environment, state_dir).map(|directory| Some(Arc::new(directory)))
}

/// Follows changes of devices. An API that cannot be used now is used later.
async fn follow(directory: Arc<Directory>, grpc: &GrpcSettings) {
    if let Err(error) = check_api(&directory, grpc).await {
        tracing::error!(error = %ErrorChain(&error), "starting without ChirpStack's API");
    }
    directory.run().await;
}
